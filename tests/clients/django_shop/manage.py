"""Django's test runner on a watched table: python manage.py test."""
import os
from django.core.management import execute_from_command_line
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
execute_from_command_line(sys.argv)
