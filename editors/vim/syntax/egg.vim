" Rules and their tests, in egglog's notation.  Generated: relax-egraph rules vocabulary
if exists('b:current_syntax') | finish | endif
syntax case match
syntax iskeyword 33,35-39,42-58,60-126,128-255

syntax match eggHead /(\@1<=\k\+/
syntax match eggUnknown /\<\%(R\|K\|Prim\)\.\k*/
syntax match eggUnknown /\<:\k*/
syntax match eggGlobal /\$\k\+/
syntax match eggNumber /\<-\?\d\+\%(\.\d*\)\?\%([eE][-+]\?\d\+\)\?\>/
syntax region eggString start=/"/ skip=/\\./ end=/"/ contains=@Spell
syntax match eggComment /;.*$/ contains=eggDirective,@Spell
syntax match eggDirective /; \zs\%(RULES\|FIRES\|float\):/ contained

syntax keyword eggRule rewrite birewrite rule
syntax keyword eggAction let set union delete subsume run run-schedule saturate seq repeat check
syntax keyword eggAction fail
syntax keyword eggDeclares relation function constructor datatype sort ruleset meaning
syntax keyword eggSort Tensor Kernel Tuple Dim Prim Shape Axes Tensors Floats i64 f64 String
syntax keyword eggSort bool Unit Vec UnstableFn PyObject
syntax keyword eggBoolean true false
syntax keyword eggNumber NaN inf -inf
syntax keyword eggOperator DimAdd DimFloorDiv DimMod DimMul DimSym K.abs K.acos K.acosh K.add
syntax keyword eggOperator K.asin K.asinh K.astype K.atan K.atan2 K.atanh K.bitwise_and
syntax keyword eggOperator K.bitwise_not K.bitwise_or K.bitwise_xor K.broadcast_to K.ceil K.clip
syntax keyword eggOperator K.cos K.cosh K.divide K.equal K.erf K.ewise_add K.ewise_fma K.exp
syntax keyword eggOperator K.expand_dims K.flatten K.floor K.floor_divide K.floor_mod K.greater
syntax keyword eggOperator K.greater_equal K.isfinite K.isinf K.isnan K.left_shift K.less
syntax keyword eggOperator K.less_equal K.load K.log K.log_add_exp K.logical_and K.logical_not
syntax keyword eggOperator K.logical_or K.logical_xor K.masked_fill K.matmul K.max K.maximum
syntax keyword eggOperator K.mean K.min K.minimum K.mod K.multiply K.negative K.nn.conv1d
syntax keyword eggOperator K.nn.conv1d_transpose K.nn.conv2d K.nn.conv2d_transpose K.nn.gelu
syntax keyword eggOperator K.nn.gelu_tanh K.nn.leakyrelu K.nn.relu K.nn.relu6 K.nn.selu K.nn.silu
syntax keyword eggOperator K.nn.softmax K.nn.softplus K.not_equal K.permute_dims K.power K.reshape
syntax keyword eggOperator K.right_shift K.round K.rsqrt K.sigmoid K.sign K.sin K.sinh K.sqrt
syntax keyword eggOperator K.square K.squeeze K.store K.strided_slice K.subtract K.sum K.tan
syntax keyword eggOperator K.tanh K.trunc K.where Leaf Opaque Prim.dim Prim.none Prim.number R.abs
syntax keyword eggOperator R.acos R.acosh R.add R.arange R.argmax R.argmin R.argsort R.asin
syntax keyword eggOperator R.asinh R.astype R.atan R.atan2 R.atanh R.bitwise_and R.bitwise_not
syntax keyword eggOperator R.bitwise_or R.bitwise_xor R.broadcast_to R.bucketize R.call_dps_packed
syntax keyword eggOperator R.call_pure_packed R.call_tir R.ceil R.check_indices R.clip
syntax keyword eggOperator R.collapse_sum_like R.collapse_sum_to R.concat R.const R.cos R.cosh
syntax keyword eggOperator R.cumprod R.cumsum R.dequantize R.dist.all_gather R.dist.all_reduce
syntax keyword eggOperator R.dist.replicate R.dist.shard R.divide R.dynamic_strided_slice R.einsum
syntax keyword eggOperator R.equal R.erf R.ewise_add R.ewise_fma R.exp R.expand_dims R.eye
syntax keyword eggOperator R.eye_like R.flatten R.flip R.floor R.floor_divide R.floor_mod R.full
syntax keyword eggOperator R.full_like R.gather_elements R.gather_nd R.grad.avg_pool2d_backward
syntax keyword eggOperator R.grad.max_pool2d_backward R.grad.nll_loss_backward
syntax keyword eggOperator R.grad.take_backward R.greater R.greater_equal R.hamming_window
syntax keyword eggOperator R.image.affine_grid R.image.grid_sample R.image.non_max_suppression
syntax keyword eggOperator R.image.resize2d R.image.resize3d R.index_put R.index_tensor R.isfinite
syntax keyword eggOperator R.isinf R.isnan R.left_shift R.less R.less_equal R.log R.log_add_exp
syntax keyword eggOperator R.logical_and R.logical_not R.logical_or R.logical_xor R.masked_fill
syntax keyword eggOperator R.matmul R.max R.maximum R.mean R.median R.meshgrid R.min R.minimum
syntax keyword eggOperator R.mod R.multinomial_from_uniform R.multiply R.negative
syntax keyword eggOperator R.nn.adaptive_avg_pool1d R.nn.adaptive_avg_pool2d
syntax keyword eggOperator R.nn.adaptive_avg_pool3d R.nn.attention R.nn.attention_bias
syntax keyword eggOperator R.nn.avg_pool1d R.nn.avg_pool2d R.nn.avg_pool3d R.nn.batch_flatten
syntax keyword eggOperator R.nn.batch_norm R.nn.conv1d R.nn.conv1d_transpose R.nn.conv2d
syntax keyword eggOperator R.nn.conv2d_transpose R.nn.conv3d R.nn.conv3d_transpose
syntax keyword eggOperator R.nn.cross_entropy_with_logits R.nn.dropout R.nn.gelu R.nn.gelu_tanh
syntax keyword eggOperator R.nn.group_norm R.nn.gru R.nn.instance_norm R.nn.layer_norm
syntax keyword eggOperator R.nn.leakyrelu R.nn.log_softmax R.nn.lstm R.nn.max_pool1d
syntax keyword eggOperator R.nn.max_pool2d R.nn.max_pool3d R.nn.nll_loss R.nn.pad
syntax keyword eggOperator R.nn.pixel_shuffle R.nn.prelu R.nn.relu R.nn.relu6 R.nn.rms_norm
syntax keyword eggOperator R.nn.rnn R.nn.rotary_embedding R.nn.selu R.nn.silu R.nn.softmax
syntax keyword eggOperator R.nn.softplus R.none R.nonzero R.not_equal R.one_hot R.ones R.ones_like
syntax keyword eggOperator R.outer R.permute_dims R.power R.prim_less_equal R.prim_to_tensor
syntax keyword eggOperator R.prod R.quantize R.reinterpret R.repeat R.reshape R.reverse_sequence
syntax keyword eggOperator R.right_shift R.round R.rsqrt R.scatter_elements R.scatter_nd
syntax keyword eggOperator R.shape_to_tensor R.sigmoid R.sign R.sin R.sinh R.size R.slice_scatter
syntax keyword eggOperator R.sort R.split R.sqrt R.square R.squeeze R.stack R.std R.strided_slice
syntax keyword eggOperator R.subtract R.sum R.take R.tan R.tanh R.tile R.topk R.tril R.triu
syntax keyword eggOperator R.trunc R.tuple_get R.unique R.variance
syntax keyword eggOperator R.vision.all_class_non_max_suppression R.vision.get_valid_counts
syntax keyword eggOperator R.vision.multibox_transform_loc R.vision.non_max_suppression R.where
syntax keyword eggOperator R.zeros R.zeros_like TupleValue Value Whole
syntax keyword eggFact all-one all-zero axes-before axes-of-both axes-of-parts
syntax keyword eggFact axis-before-broadcast axis-before-reduction axis-before-reshape axis-of
syntax keyword eggFact axis-without bias-shape common-shape const-scalar dim-divides dim-equal
syntax keyword eggFact dim-ge dim-text dims-of dtype-claim dtype-holds dtype-of has-reciprocal
syntax keyword eggFact inverse-of is-const is-float is-repeated-along is-static layout-before
syntax keyword eggFact layout-permuted number-of numel-of only-units-move only-used-by
syntax keyword eggFact permutation-of-parts permutation-without position-on product-along
syntax keyword eggFact rank-of shape-claim shape-keeping shape-of shape-of-parts shape-without
syntax keyword eggFact source-index units-of uses-of varies varying-axes
syntax keyword eggFact with-units-behind-parts within-tolerance
syntax keyword eggPrimitive vec-of vec-empty vec-get vec-length vec-push vec-pop vec-append vec-set
syntax keyword eggPrimitive vec-remove vec-contains vec-not-contains vec-range unstable-vec-map
syntax keyword eggPrimitive unstable-fn unstable-app abs min max not log2 to-f64 to-i64 to-string
syntax keyword eggPrimitive py-call py-from-string py-to-string
syntax keyword eggOption :when :subsume :demand :ruleset :name :merge :no-merge :until

highlight default link eggRule Keyword
highlight default link eggAction Statement
highlight default link eggDeclares Structure
highlight default link eggSort Type
highlight default link eggBoolean Boolean
highlight default link eggNumber Number
highlight default link eggOperator Function
highlight default link eggFact Special
highlight default link eggPrimitive Operator
highlight default link eggOption PreProc
highlight default link eggHead Identifier
highlight default link eggUnknown Error
highlight default link eggGlobal Constant
highlight default link eggString String
highlight default link eggComment Comment
highlight default link eggDirective SpecialComment

let b:current_syntax = 'egg'
