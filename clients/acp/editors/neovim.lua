-- Two turns in a chat of CodeCompanion, and what stands in its buffer after them.
--
-- Run by `nvim --headless -u`. ACP_AGENT is the agent's command line, as a JSON list; PLUGINS is the directory that holds
-- codecompanion.nvim and plenary.nvim; PROMPT and CANCELLED are what is said: the first turn ends by itself, the second is
-- stopped once it has begun to answer. What is told, on stdout, is a line of JSON. The paths of the files that CodeCompanion writes for
-- the agent go to the file WRITTEN, if there is one.

for _, plugin in ipairs({ "plenary.nvim", "codecompanion.nvim" }) do
  vim.opt.rtp:prepend(vim.env.PLUGINS .. "/" .. plugin)
end
local agent = vim.json.decode(vim.env.ACP_AGENT)

require("codecompanion").setup({
  adapters = {
    acp = {
      claude_code = function()
        return require("codecompanion.adapters").extend("claude_code", {
          commands = { default = agent },
          handlers = { auth = function() return true end },
        })
      end,
    },
  },
  interactions = { chat = { adapter = "claude_code" } },
})

local fs = require("codecompanion.interactions.chat.acp.fs")
local write_text_file = fs.write_text_file
fs.write_text_file = function(path, content)
  if vim.env.WRITTEN then
    vim.fn.writefile({ path }, vim.env.WRITTEN, "a")
  end
  return write_text_file(path, content)
end

local told = { accepted = 0 }

local function tell(failure)
  told.failure = failure
  io.stdout:write(vim.json.encode(told) .. "\n")
  vim.cmd("qa!")
end

vim.defer_fn(function()
  local chat = require("codecompanion").chat()
  if not chat then
    return tell("there is no chat")
  end
  local function text()
    return table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), "\n")
  end
  -- Whoever sits in front of it presses the key that allows what is asked for, once.
  local key = require("codecompanion.interactions.chat.tools.labels").keymaps().accept
  local function press()
    vim.api.nvim_buf_call(chat.bufnr, function()
      local map = vim.fn.maparg(key, "n", false, true)
      if map.callback then
        told.accepted = told.accepted + 1
        map.callback()
      end
    end)
  end
  local function until_(what, holds)
    local held = vim.wait(60000, function()
      press()
      return holds()
    end, 50)
    if not held then
      told.text = text()
      tell(what)
    end
    return held
  end
  local function say(words)
    chat:add_buf_message({ role = "user", content = words })
    chat:submit()
  end
  local function idle()
    return chat.current_request == nil
  end

  if not until_("it does not connect", function()
    return chat.acp_connection and chat.acp_connection:is_connected()
  end) then return end
  say(vim.env.PROMPT)
  if not until_("the first turn does not end", function()
    return idle() and text():find("the-very-end", 1, true) ~= nil
  end) then return end
  say(vim.env.CANCELLED)
  if not until_("the second turn does not begin", function()
    return text():find("only-a-beginning", 1, true) ~= nil
  end) then return end
  chat:stop()
  if not until_("the second turn does not end", idle) then return end
  told.text = text()
  tell(nil)
end, 100)
