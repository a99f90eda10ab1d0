from django.db import migrations, models


class Migration(migrations.Migration):
    operations = [
        # template1 contains awty, so awty is already installed. The statement changes nothing and needs no superuser.
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS awty"),
        migrations.CreateModel(name="Order", fields=[
            ("id", models.BigAutoField(primary_key=True, serialize=False, auto_created=True, verbose_name="ID")),
            ("placed_at", models.DateTimeField()),
            ("shipped", models.BooleanField(default=False)),
        ]),
        migrations.RunSQL("SELECT awty.watch('shop_order', since => 'placed_at', until => 'shipped', within => '3 hours')",
                          "SELECT awty.unwatch('shop_order')"),
    ]
