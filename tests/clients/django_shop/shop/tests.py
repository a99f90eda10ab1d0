import datetime
from django.core.management import call_command
from django.db import connection
from django.test import TestCase, TransactionTestCase
from django.utils import timezone
from .models import Order


def one(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()[0]


def place():
    return Order.objects.create(placed_at=timezone.now())


class Undone(TestCase):
    """Each test is a transaction that is rolled back, so it can travel."""

    def test_a_row_has_its_check(self):
        order = place()
        self.assertEqual(one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'shop_order' AND entity_key = %s", str(order.pk)), 1)

    def test_the_check_of_another_test_is_undone(self):
        self.assertEqual(one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'shop_order'"), 0)

    def test_a_late_order_has_an_alert(self):
        order = place()
        one("SELECT count(*) FROM awty.travel('4 hours')")
        self.assertEqual(one("SELECT level FROM awty.late WHERE entity_key = %s", str(order.pk)), 1)
        order.shipped = True
        order.save()
        self.assertEqual(one("SELECT count(*) FROM awty.late"), 0)


class Committed(TransactionTestCase):
    """Tables are emptied after each test."""

    def test_a_bulk_insert_has_checks_and_a_flush_ends_them(self):
        Order.objects.bulk_create([Order(placed_at=timezone.now() + datetime.timedelta(hours=n)) for n in range(5)])
        self.assertEqual(one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'shop_order'"), 5)
        Order.objects.all().delete()
        self.assertEqual(one("SELECT count(*) FROM awty.future_job WHERE entity_name = 'shop_order'"), 0)

    def test_the_models_have_no_drift(self):
        call_command("makemigrations", "--check", "--dry-run")
