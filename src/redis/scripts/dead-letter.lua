#!lua flags=allow-oom
-- Decides about a dead letter, once a call: back into its account's outbox as a new entry, or gone. Parts that were sent
-- or changed keep their receipts and are not sent again as they were; the unclear ones lose theirs.
-- A: id (outbound), call (names this call: repeated, it gives the same answer), again (true: back into the outbox)
-- Returns {'none'} | {'ok'}
local done = key('deadCall', A.call)
if redis.call('EXISTS', done) == 1 then return { 'ok' } end
local stored = redis.call('HGET', key('deadOut'), A.id)
if not stored then return { 'none' } end
redis.call('HDEL', key('deadOut'), A.id)
local receipts = redis.call('HGETALL', key('receipt', A.id))
for i = 1, A.again and #receipts or 0, 2 do
  local state = cjson.decode(receipts[i + 1]).state
  if state ~= 'sent' and state ~= 'changed' then redis.call('HDEL', key('receipt', A.id), receipts[i]) end
end
redis.call('EXPIRE', key('receipt', A.id), 2 * DAY)
if A.again then
  local letter = cjson.decode(stored)
  redis.call('XADD', key('outbox', letter.account), '*', 'b', letter.body)
end
redis.call('SET', done, '1', 'EX', 60)
return { 'ok' }
