import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade():
    op.create_table("parcel", sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
                    sa.Column("sent_at", sa.TIMESTAMP(timezone=True), nullable=False))
    op.execute("SELECT awty.watch('parcel', since => 'sent_at', until => 'false', within => '1 day')")


def downgrade():
    op.drop_table("parcel")
