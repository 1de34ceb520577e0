"""What people say: statistics of ratings, from answers to opinions."""
