"""The layouts that are recognised; each is a plug-in like any other."""
