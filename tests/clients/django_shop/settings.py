import os

SECRET_KEY = "for tests only"
INSTALLED_APPS = ["shop"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "HOST": os.environ["PGHOST"],
                         "PORT": os.environ["PGPORT"], "USER": os.environ["PGUSER"]}}
