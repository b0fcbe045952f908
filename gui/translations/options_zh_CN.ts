<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>option names</name>
    <message>
        <source>dp</source>
        <translation>数据并行 dp</translation>
    </message>
    <message>
        <source>tp</source>
        <translation>张量并行 tp</translation>
    </message>
    <message>
        <source>pp</source>
        <translation>流水线并行 pp</translation>
    </message>
    <message>
        <source>cp</source>
        <translation>上下文并行 cp</translation>
    </message>
    <message>
        <source>context</source>
        <translation>上下文方式</translation>
    </message>
    <message>
        <source>sequence parallel</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>virtual stages</source>
        <translation>虚拟阶段</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>microbatch group</source>
        <translation>微批分组</translation>
    </message>
    <message>
        <source>layer split</source>
        <translation>层划分</translation>
    </message>
    <message>
        <source>placement</source>
        <translation>放置顺序</translation>
    </message>
    <message>
        <source>micro batch</source>
        <translation>微批</translation>
    </message>
    <message>
        <source>global batch</source>
        <translation>全局批</translation>
    </message>
    <message>
        <source>seq</source>
        <translation>序列长度</translation>
    </message>
    <message>
        <source>zero</source>
        <translation>ZeRO</translation>
    </message>
    <message>
        <source>zero group</source>
        <translation>ZeRO 组</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>framework memory</source>
        <translation>框架显存</translation>
    </message>
    <message>
        <source>reserve</source>
        <translation>预留</translation>
    </message>
    <message>
        <source>precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>param dtype</source>
        <translation>参数格式</translation>
    </message>
    <message>
        <source>grad dtype</source>
        <translation>梯度格式</translation>
    </message>
    <message>
        <source>state dtype</source>
        <translation>状态格式</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>dropout</source>
        <translation>dropout 比例</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>momentum</source>
        <translation>动量</translation>
    </message>
    <message>
        <source>clip norm</source>
        <translation>梯度裁剪</translation>
    </message>
    <message>
        <source>vocab multiple</source>
        <translation>词表对齐</translation>
    </message>
    <message>
        <source>bucket</source>
        <translation>梯度桶</translation>
    </message>
    <message>
        <source>overlap</source>
        <translation>重叠</translation>
    </message>
    <message>
        <source>algorithm</source>
        <translation>集合算法</translation>
    </message>
    <message>
        <source>framework</source>
        <translation>框架</translation>
    </message>
    <message>
        <source>stages</source>
        <translation>各阶段的并行度</translation>
    </message>
    <message>
        <source>loss scale</source>
        <translation>损失缩放</translation>
    </message>
</context>
<context>
    <name>option groups</name>
    <message>
        <source>parallelism</source>
        <translation>并行</translation>
    </message>
    <message>
        <source>batch</source>
        <translation>批</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>numbers</source>
        <translation>数值</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>options</source>
        <translation>选项</translation>
    </message>
</context>
<context>
    <name>option help</name>
    <message>
        <source>data-parallel replicas; 0: the rest of the GPUs</source>
        <translation>数据并行副本数；0：其余的 GPU</translation>
    </message>
    <message>
        <source>dp x tp x cp x pp is the number of GPUs</source>
        <translation>dp × tp × cp × pp 等于 GPU 数</translation>
    </message>
    <message>
        <source>tensor-parallel GPUs per layer</source>
        <translation>每层的张量并行 GPU 数</translation>
    </message>
    <message>
        <source>divides the number of heads</source>
        <translation>整除注意力头数</translation>
    </message>
    <message>
        <source>pipeline ranks</source>
        <translation>流水线级数</translation>
    </message>
    <message>
        <source>pp x virtual_stages stages, each with at least one layer</source>
        <translation>共 pp × 虚拟阶段 个阶段，每个至少一层</translation>
    </message>
    <message>
        <source>context-parallel GPUs, each with a part of the sequence</source>
        <translation>上下文并行 GPU 数，每个处理序列的一部分</translation>
    </message>
    <message>
        <source>2 x cp divides the sequence of a causal model</source>
        <translation>因果模型中 2 × cp 整除序列长度</translation>
    </message>
    <message>
        <source>how keys and values meet under context parallelism</source>
        <translation>上下文并行时键和值如何汇合</translation>
    </message>
    <message>
        <source>norms and dropout are split along the sequence over the tensor-parallel GPUs</source>
        <translation>归一化和 dropout 沿序列切分到张量并行 GPU 上</translation>
    </message>
    <message>
        <source>tp divides the sequence</source>
        <translation>tp 整除序列长度</translation>
    </message>
    <message>
        <source>model chunks per pipeline rank</source>
        <translation>每个流水线级的模型块数</translation>
    </message>
    <message>
        <source>more than 1 with schedule interleaved-1f1b, 2 with zb-v</source>
        <translation>大于 1 时使用 interleaved-1f1b 调度，zb-v 为 2</translation>
    </message>
    <message>
        <source>order of forwards and backwards; auto: 1f1b, interleaved-1f1b with virtual stages; zb-*: zero bubble, input and weight gradients apart</source>
        <translation>前向与反向的顺序；自动：1f1b，有虚拟阶段时为 interleaved-1f1b；zb-*：零气泡，输入梯度与权重梯度分开</translation>
    </message>
    <message>
        <source>zb-*: ZeRO 0 or 1</source>
        <translation>zb-*：ZeRO 0 或 1</translation>
    </message>
    <message>
        <source>layers per stage, such as 2,3x14,2; empty: even</source>
        <translation>每个阶段的层数，例如 2,3x14,2；空：均分</translation>
    </message>
    <message>
        <source>adds up to the layers of the model</source>
        <translation>总和等于模型层数</translation>
    </message>
    <message>
        <source>sequences per micro-batch</source>
        <translation>每个微批的序列数</translation>
    </message>
    <message>
        <source>sequences per step over all replicas; 0: one micro-batch per replica</source>
        <translation>每步所有副本的序列数；0：每个副本一个微批</translation>
    </message>
    <message>
        <source>a multiple of micro_batch x dp</source>
        <translation>为 微批 × dp 的倍数</translation>
    </message>
    <message>
        <source>tokens per sequence; 0: the maximum of the model</source>
        <translation>每个序列的词元数；0：模型的最大值</translation>
    </message>
    <message>
        <source>ZeRO stage: 1 shards optimizer states, 2 also gradients, 3 also parameters</source>
        <translation>ZeRO 级别：1 切分优化器状态，2 加上梯度，3 再加上参数</translation>
    </message>
    <message>
        <source>data-parallel GPUs that share one set of states; 0: all</source>
        <translation>共享一份状态的数据并行 GPU 数；0：全部</translation>
    </message>
    <message>
        <source>divides dp</source>
        <translation>整除 dp</translation>
    </message>
    <message>
        <source>what the backward computes again: none, selective, full, full:N layers per stage or full:N,N,.. of each, layers:A-B,.. of the model, auto: on each stage as few as make room, modules, or schedules inside the memory that is free or given: rotor of layers, graph of operators, revolve:N inputs kept at once</source>
        <translation>反向时重新计算什么：none、selective、full、full:N（每阶段 N 层）或 full:N,N,..（各阶段），layers:A-B,..（模型的层），auto：各阶段只取放得下所需的最少层数，模块，或在空闲或给定内存内的方案：rotor（按层）、graph（按算子）、revolve:N（同时保留 N 个层输入）</translation>
    </message>
    <message>
        <source>context, workspaces and communication buffers per GPU; auto: by GPU and groups</source>
        <translation>每块 GPU 的上下文、工作区和通信缓冲；自动：按 GPU 和通信组</translation>
    </message>
    <message>
        <source>share of the GPU memory that stays free</source>
        <translation>保持空闲的显存比例</translation>
    </message>
    <message>
        <source>number format of activations and matrix products</source>
        <translation>激活和矩阵乘法的数值格式</translation>
    </message>
    <message>
        <source>share of the activations that dropout clears</source>
        <translation>dropout 清零的激活比例</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>size of a gradient bucket; 0: max(40e6, 1e6 dp) elements</source>
        <translation>梯度桶大小；0：max(40e6, 1e6 dp) 个元素</translation>
    </message>
    <message>
        <source>communication that runs beside computation: some of grad,param,p2p,tp, or none</source>
        <translation>与计算并行的通信：grad、param、p2p、tp 中的若干，或 none</translation>
    </message>
    <message>
        <source>how collectives are carried out; where one does not apply, a ring</source>
        <translation>集合通信的算法；不适用时用环形</translation>
    </message>
    <message>
        <source>whose defaults and overheads hold</source>
        <translation>采用哪个框架的默认值和开销</translation>
    </message>
    <message>
        <source>interleaved-1f1b: micro-batches per chunk before the next chunk; 0: pp</source>
        <translation>interleaved-1f1b：换到下一个模型块之前每块处理的微批数；0：等于 pp</translation>
    </message>
    <message>
        <source>layers per stage, such as 2,3x14,2; auto: by their times; empty: even</source>
        <translation>每个阶段的层数，例如 2,3x14,2；auto：按各层用时；留空：均分</translation>
    </message>
    <message>
        <source>each stage with replicas and tensor-parallel GPUs of its own, such as 10:2x1,4x3:1x2 (4x3: three of four layers); instead of dp, tp, pp</source>
        <translation>每个阶段各有自己的副本数与张量并行 GPU 数，例如 10:2x1,4x3:1x2（4x3：三个各四层的阶段）；代替 dp、tp、pp</translation>
    </message>
    <message>
        <source>format of the parameters; auto: by precision and framework</source>
        <translation>参数的数值格式；auto：由精度和框架决定</translation>
    </message>
    <message>
        <source>format in which gradients are summed; auto: by precision and framework</source>
        <translation>梯度求和的数值格式；auto：由精度和框架决定</translation>
    </message>
    <message>
        <source>format of the master copy and the moments; auto: fp32, fp64 with fp64 parameters</source>
        <translation>主副本和动量的数值格式；auto：fp32，参数为 fp64 时用 fp64</translation>
    </message>
    <message>
        <source>attention kernel; auto: flash where the GPU has it</source>
        <translation>注意力内核；auto：GPU 支持时用 flash</translation>
    </message>
    <message>
        <source>momentum of sgd; 0: none</source>
        <translation>sgd 的动量；0：无</translation>
    </message>
    <message>
        <source>gradients are scaled down to this norm; 0: never</source>
        <translation>梯度缩小到此范数；0：从不</translation>
    </message>
    <message>
        <source>the backward works on the loss times this; 0: dynamic, steps that overflow are skipped</source>
        <translation>反向计算使用乘以此值的损失；0：动态，溢出的步被跳过</translation>
    </message>
    <message>
        <source>the vocabulary is padded to a multiple of this times tp; 0: as the framework does</source>
        <translation>词表补齐到此值乘以 tp 的倍数；0：按框架的做法</translation>
    </message>
</context>
<context>
    <name>objectives</name>
    <message>
        <source>time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>成本</translation>
    </message>
    <message>
        <source>energy</source>
        <translation>能耗</translation>
    </message>
    <message>
        <source>pareto</source>
        <translation>帕累托（时间与显存）</translation>
    </message>
</context>
<context>
    <name>bound by</name>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>tensor communication</source>
        <translation>张量通信</translation>
    </message>
    <message>
        <source>pipeline</source>
        <translation>流水线</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
</context>
</TS>
