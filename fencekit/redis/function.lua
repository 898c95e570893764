#!lua name=fencepost
-- The same as check.lua: FCALL fenced 2 {account:7} {account:7}:fence 34 70
redis.register_function('fenced', function(keys, args)
  local known = redis.call('GET', keys[2]) or '0'
  if known ~= args[1] then
    if tonumber(known) > tonumber(args[1]) then
      return redis.error_reply('STALE_FENCE ' .. known)
    end
    redis.call('SET', keys[2], args[1])
  end
  if args[2] then return redis.call('SET', keys[1], args[2]) end
  return redis.call('GET', keys[1])
end)
