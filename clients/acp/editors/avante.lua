-- Two turns by Avante's client of the protocol, and what it was told.
--
-- Run by `nvim --headless -u`. ACP_AGENT is the agent's command line, as a JSON list; PLUGINS is the directory that holds avante.nvim and
-- plenary.nvim; PROMPT and CANCELLED are what is said: the first turn ends by itself, the second is cancelled once it has begun to
-- answer. What is told, on stdout, is a line of JSON.

for _, plugin in ipairs({ "plenary.nvim", "avante.nvim" }) do
  vim.opt.rtp:prepend(vim.env.PLUGINS .. "/" .. plugin)
end
local told = { said = "", calls = {}, stops = {}, asked = 0 }

local function tell(failure)
  told.failure = failure
  io.stdout:write(vim.json.encode(told) .. "\n")
  vim.cmd("qa!")
end

-- What the page has as the settings of a provider; Avante gives it to the client.
local function provider(agent)
  return {
    command = table.remove(agent, 1),
    args = agent,
    -- Avante passes on the PATH and what stands here.
    env = vim.fn.environ(),
  }
end

vim.defer_fn(function()
  local config = provider(vim.json.decode(vim.env.ACP_AGENT))
  local client
  local session
  config.transport_type = "stdio"
  config.handlers = {
    on_session_update = function(update)
      if update.sessionUpdate == "agent_message_chunk" then
        told.said = told.said .. update.content.text
      elseif update.sessionUpdate == "tool_call" or update.sessionUpdate == "tool_call_update" then
        table.insert(told.calls, { update.title or "", update.status or "" })
      end
    end,
    on_request_permission = function(_, options, callback)
      told.asked = told.asked + 1
      for _, option in ipairs(options) do
        if option.kind == "allow_once" then
          return callback(option.optionId)
        end
      end
      -- As when somebody closes the question: an answer without a choice.
      callback(nil)
    end,
  }
  client = require("avante.libs.acp_client"):new(config)
  local function wait(what, holds)
    local held = vim.wait(60000, holds, 20)
    if not held then
      tell(what)
    end
    return held
  end
  local function say(words)
    local reply
    client:send_prompt(session, { client:create_text_content(words) }, function(result, err)
      reply = { result, err }
    end)
    return function()
      if not reply then
        return false
      end
      table.insert(told.stops, reply[1] and reply[1].stopReason or reply[2])
      return true
    end
  end

  client:connect(function(err)
    if err then
      return tell(err)
    end
    client:create_session(vim.fn.getcwd(), {}, function(id, why)
      session = id
      if not id then
        tell(why)
      end
    end)
  end)
  if not wait("there is no session", function() return session ~= nil end) then return end
  if not wait("the first turn does not end", say(vim.env.PROMPT)) then return end
  local second = say(vim.env.CANCELLED)
  if not wait("the second turn does not begin", function()
    return told.said:find("only-a-beginning", 1, true) ~= nil
  end) then return end
  client:cancel_session(session)
  if not wait("the second turn does not end", second) then return end
  client:stop()
  tell(nil)
end, 100)
