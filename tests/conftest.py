"""What all tests share."""

from hypothesis import settings

# A slow example on a busy machine is no failure: what must be fast is measured, by `make bench`.
settings.register_profile("wiretrap", deadline=None)
settings.load_profile("wiretrap")
