from django.db import migrations, models


class Migration(migrations.Migration):
    operations = [
        # awty is already installed, because template1 contains it. The statement therefore needs no superuser.
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS awty"),
        migrations.CreateModel(name="Order", fields=[
            ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
            ("placed_at", models.DateTimeField()),
            ("shipped", models.BooleanField(default=False)),
        ]),
        migrations.RunSQL("SELECT awty.watch('shop_order', since => 'placed_at', until => 'shipped', within => '3 hours')",
                          "SELECT awty.unwatch('shop_order')"),
    ]
