" Names as rules write them, R.nn.softmax and shape-of; completion (CTRL-X CTRL-K) from egg.words.
if exists('b:did_ftplugin') | finish | endif
let b:did_ftplugin = 1

setlocal iskeyword=33,35-39,42-58,60-126,128-255
setlocal commentstring=;\ %s comments=:; lisp autoindent expandtab
let &l:dictionary = expand('<sfile>:p:h:h') . '/egg.words'

let b:undo_ftplugin = 'setlocal iskeyword< commentstring< comments< lisp< autoindent< expandtab< dictionary<'
