#!lua flags=allow-oom
-- Stores what became of a part, under the owner's fence.
-- A: account, fence, id (outbound), part, receipt (JSON text)
-- Returns {'lost'} | {'ok'}
local h = redis.call('HMGET', key('accountOwner', A.account), 'fence', 'until')
if tonumber(h[1]) ~= A.fence or (tonumber(h[2]) or 0) < nowMs then return { 'lost' } end
redis.call('HSET', key('receipt', A.id), int(A.part), A.receipt)
redis.call('EXPIRE', key('receipt', A.id), 2 * DAY)
return { 'ok' }
