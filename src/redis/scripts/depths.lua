#!lua flags=allow-oom
-- How much waits and runs, over all processes.
-- A: –
-- Returns {scheduled, running, parked, waiting for a slot, workers, age of the oldest scheduled (ms) or -1}
local oldest = redis.call('ZRANGE', key('sched'), 0, 0, 'WITHSCORES')[2]
return {
  int(redis.call('ZCARD', key('sched'))), int(redis.call('ZCARD', key('lease'))), int(redis.call('ZCARD', key('parked'))),
  int(redis.call('ZCARD', key('waiting'))), int(redis.call('ZCOUNT', key('workers'), int(nowMs), '+inf')),
  oldest and int(math.max(0, nowMs - tonumber(oldest))) or '-1',
}
