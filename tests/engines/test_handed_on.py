"""Which settings of the driver go to the machines of a cluster."""

from __future__ import annotations

from convergebench.engines.ray import settings


def test_names_are_handed_on_and_secrets_are_not() -> None:
    names = {
        "CONVERGEBENCH_WEIGHTS": "/weights",
        "AWS_ENDPOINT_URL": "http://store.example:9000",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AZURE_STORAGE_ACCOUNT_NAME": "pictures",
        "GOOGLE_CLOUD_PROJECT": "restoration",
    }
    secrets = {
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_ENDPOINT_URL_S3": "http://me:s3cret@store.example:9000",
        "AZURE_STORAGE_CONNECTION_STRING": "AccountName=pictures;AccountKey=s3cret",
        "AZURE_STORAGE_ACCOUNT_KEY": "s3cret",
        "AZURE_STORAGE_SAS_TOKEN": "s3cret",
        "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "OPENAI_API_KEY": "s3cret",
    }
    assert settings({**names, **secrets, "HOME": "/home/me"}) == names
