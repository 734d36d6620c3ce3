/* Loaded by loader.c while that runs.
   flags: -shared -fPIC */
#include "common.h"

static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

NAMED void plugin_early(void)
{
    sink += burn(2000, 3);
}

NAMED void plugin_late(void)
{
    sink += burn(2000, 5);
}

NAMED void plugin_take(void)
{
    pthread_mutex_lock(&plugin_lock);
    sink += burn(200, 7);
    pthread_mutex_unlock(&plugin_lock);
}
