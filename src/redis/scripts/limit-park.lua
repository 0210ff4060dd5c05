#!lua flags=allow-oom
-- Leaves a bucket alone for a while. A shorter wait never ends a longer one.
-- A: parked (the rest of the key's name), ms
-- Returns {'ok'}
local parked = key('limitParked', A.parked)
if redis.call('PTTL', parked) < A.ms then redis.call('SET', parked, '1', 'PX', int(A.ms)) end
return { 'ok' }
