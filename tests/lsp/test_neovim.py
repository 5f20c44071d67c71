"""A rule file in Neovim, as editors/README.md sets it up."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VIM = Path(__file__).parents[2] / "editors" / "vim"

SESSION = """
require('relax_egraph').setup({ cmd = vim.json.decode(vim.env.SERVER) })
vim.cmd('filetype plugin on')
vim.cmd('edit my.egg')
local function shown()
  local found = {}
  for _, d in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, string.format('%d:%d %s', d.lnum + 1, d.col + 1, d.message))
  end
  return found
end
vim.wait(30000, function() return #vim.diagnostic.get(0) == 1 end)
local before = shown()
vim.api.nvim_buf_set_text(0, 0, 10, 0, 16, { 'R.cosh' })
vim.wait(30000, function() return #vim.diagnostic.get(0) == 0 end)
local file = io.open('said.json', 'w')
file:write(vim.json.encode({ before = before, after = #vim.diagnostic.get(0) }))
file:close()
vim.cmd('quitall!')
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_an_error_until_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "my.egg").write_text('(rewrite (R.chos (R.negative x)) (R.cosh x) :name "even")\n')
    (tmp_path / "session.lua").write_text(SESSION)
    server = json.dumps([sys.executable, "-m", "relax_egraph", "lsp"])
    path = f"set runtimepath^={VIM}"
    command = ["nvim", "--headless", "--clean", "--cmd", path, "-S", "session.lua"]
    environment = {"SERVER": server, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    environment["PYTHONPATH"] = ":".join(filter(None, sys.path))

    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=120)

    assert json.loads((tmp_path / "said.json").read_text()) == {
        "before": ["1:11 unknown operator R.chos\ndid you mean R.cos?"],
        "after": 0,
    }
