from django.db import models


class Order(models.Model):
    placed_at = models.DateTimeField()
    shipped = models.BooleanField(default=False)
