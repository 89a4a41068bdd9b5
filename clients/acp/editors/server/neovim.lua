-- Opens FILE with a diagnostic and a selection, and answers the requests in REQUESTS, a JSON list; the answers are a line of JSON.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local server = dofile(here .. "/editor_server.lua")

vim.cmd("edit " .. vim.fn.fnameescape(vim.env.FILE))
vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, {
  { lnum = 1, col = 2, severity = vim.diagnostic.severity.ERROR, source = "test", message = "it is wrong" },
})
vim.cmd("normal! 2GVj\27")
vim.api.nvim_buf_set_lines(0, 0, 1, true, { "changed" })
local answers = vim.tbl_map(server.answer, vim.json.decode(vim.env.REQUESTS))
io.stdout:write(vim.json.encode({ entry = server.server(), answers = answers }) .. "\n")
vim.cmd("qa!")
