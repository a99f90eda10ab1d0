/* Raises and catches an ERROR at each abort of a transaction or subtransaction, as Citus does if another node fails. */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

static void raise_and_catch(void)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		ereport(ERROR, (errmsg("caught by the library")));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
}

static void at_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT)
		raise_and_catch();
}

static void at_sub_end(SubXactEvent event, SubTransactionId self, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		raise_and_catch();
}

void _PG_init(void)
{
	RegisterXactCallback(at_end, NULL);
	RegisterSubXactCallback(at_sub_end, NULL);
}
