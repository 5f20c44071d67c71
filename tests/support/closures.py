"""Programs with functions as values."""

RETURNED = """
@I.ir_module
class Module:
    @R.function
    def adder(x: R.Tensor((3,), "float32")):
        @R.function
        def add(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            z = R.add(y, x)
            return z
        return add
    @R.function
    def main(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
        cls = Module
        f = cls.adder(a)
        c = f(b)
        d = f(c)
        return d
"""

HIGHER_ORDER = """
@I.ir_module
class Module:
    @R.function
    def twice(
        f: R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32")),
        x: R.Tensor((3,), "float32"),
    ) -> R.Tensor((3,), "float32"):
        y = f(x)
        z = f(y)
        return z
    @R.function(private=True)
    def double(x: R.Tensor((3,), "float32")):
        y = R.add(x, x)
        return y
    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")):
        cls = Module
        @R.function
        def scale(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            z = R.multiply(y, w)
            return z
        a = cls.twice(cls.double, x)
        b = cls.twice(scale, a)
        @R.function
        def both(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            z = scale(y)
            u = cls.twice(scale, z)
            return u
        c = cls.twice(both, b)
        return c
"""
