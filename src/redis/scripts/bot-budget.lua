#!lua
-- Takes a message out of another bot's budget, unless that is spent: at most so many within any window. The same message
-- counts once.
-- A: bot (channel, chat and bot as one name), message, messages, perMs
-- Returns {'taken'} | {'spent'} (for the first time in a window) | {'still_spent'}
local name = key('botBudget', A.bot)
redis.call('ZREMRANGEBYSCORE', name, '-inf', int(nowMs - A.perMs))
if redis.call('ZSCORE', name, A.message) then return { 'taken' } end
if redis.call('ZCARD', name) >= A.messages then
  local isFirst = redis.call('SET', key('botSpent', A.bot), '1', 'NX', 'PX', int(A.perMs))
  return { isFirst and 'spent' or 'still_spent' }
end
redis.call('ZADD', name, int(nowMs), A.message)
redis.call('PEXPIRE', name, int(A.perMs))
return { 'taken' }
