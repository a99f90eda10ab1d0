import os
import sqlalchemy as sa
from alembic import context

metadata = sa.MetaData()
sa.Table("parcel", metadata, sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
         sa.Column("sent_at", sa.TIMESTAMP(timezone=True), nullable=False))

url = sa.URL.create("postgresql+psycopg", os.environ["PGUSER"], database=os.environ["PGDATABASE"],
                    query={"host": os.environ["PGHOST"], "port": os.environ["PGPORT"]})
with sa.create_engine(url).connect() as connection:
    # Without this filter (docs/clients.md), Alembic would take awty's tables for a difference from the models.
    context.configure(connection=connection, target_metadata=metadata, include_schemas=True,
                      include_name=lambda name, kind, parents: kind != "schema" or not (name or "").startswith("awty"))
    with context.begin_transaction():
        context.run_migrations()
