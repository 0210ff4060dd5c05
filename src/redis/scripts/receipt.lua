#!lua flags=allow-oom
-- Stores what became of a part, or forgets it, under the owner's fence.
-- A: account, fence, id (outbound), part (its name), receipt (JSON text, or '' to forget)
-- Returns {'lost'} | {'ok'}
local h = redis.call('HMGET', key('accountOwner', A.account), 'fence', 'until')
if tonumber(h[1]) ~= A.fence or (tonumber(h[2]) or 0) < nowMs then return { 'lost' } end
if A.receipt == '' then
  redis.call('HDEL', key('receipt', A.id), A.part)
  return { 'ok' }
end
redis.call('HSET', key('receipt', A.id), A.part, A.receipt)
redis.call('EXPIRE', key('receipt', A.id), 2 * DAY)
return { 'ok' }
