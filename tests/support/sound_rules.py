"""Rules of a user that are sound."""

NEGATIVES = """\
; -(-x) = x
; float: exact
(rewrite (R.negative (R.negative x)) x :name "negative-twice-again")

; (-x) * (-y) = x * y
; float: exact
(rewrite (R.multiply (R.negative x) (R.negative y)) (R.multiply x y) :name "both-negative-again")
"""
