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
        <source>ep</source>
        <translation>专家并行 ep</translation>
    </message>
    <message>
        <source>etp</source>
        <translation>专家张量并行 etp</translation>
    </message>
    <message>
        <source>expert load</source>
        <translation>专家负载</translation>
    </message>
    <message>
        <source>expert capacity</source>
        <translation>专家容量</translation>
    </message>
    <message>
        <source>expert unpadded</source>
        <translation>专家不补齐</translation>
    </message>
    <message>
        <source>expert dispatcher</source>
        <translation>专家分发方式</translation>
    </message>
    <message>
        <source>expert node ranks</source>
        <translation>专家组每节点 rank 数</translation>
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
        <source>schedule order</source>
        <translation>调度列表</translation>
    </message>
    <message>
        <source>schedule times</source>
        <translation>调度用时</translation>
    </message>
    <message>
        <source>microbatch group</source>
        <translation>微批分组</translation>
    </message>
    <message>
        <source>delay wgrad</source>
        <translation>推迟权重梯度</translation>
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
        <source>packing</source>
        <translation>显存排布</translation>
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
        <source>offload optimizer</source>
        <translation>优化器状态的位置</translation>
    </message>
    <message>
        <source>offload kept</source>
        <translation>留在显卡的优化器状态</translation>
    </message>
    <message>
        <source>updated on</source>
        <translation>更新由谁执行</translation>
    </message>
    <message>
        <source>update per layer</source>
        <translation>逐层更新</translation>
    </message>
    <message>
        <source>policy</source>
        <translation>运行时策略</translation>
    </message>
    <message>
        <source>offload parameters</source>
        <translation>参数的位置</translation>
    </message>
    <message>
        <source>offload gradients</source>
        <translation>梯度的位置</translation>
    </message>
    <message>
        <source>offload activations</source>
        <translation>卸载激活</translation>
    </message>
    <message>
        <source>offload to</source>
        <translation>激活卸载到</translation>
    </message>
    <message>
        <source>offload layers</source>
        <translation>卸载激活的层数</translation>
    </message>
    <message>
        <source>offload budget</source>
        <translation>卸载内存预算</translation>
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
        <source>parts</source>
        <translation>算子分块</translation>
    </message>
    <message>
        <source>servers</source>
        <translation>服务器数</translation>
    </message>
    <message>
        <source>server placement</source>
        <translation>服务器位置</translation>
    </message>
    <message>
        <source>transfers</source>
        <translation>阶段间传输</translation>
    </message>
    <message>
        <source>what tensor-parallel ranks send to another stage of a value that all of them hold: each the whole, or each its part, and the receiving ranks gather (split); auto: as the framework does</source>
        <translation>张量并行各 rank 都持有的值向另一流水线阶段发送什么：每个 rank 发送整个值，或每个只发送自己的一份、由接收方收集（split）；auto：与框架相同</translation>
    </message>
    <message>
        <source>split: not with --stages, whose groups differ in size</source>
        <translation>split：不能与 --stages 同时使用，因为其各组大小不同</translation>
    </message>
    <message>
        <source>asynchronous</source>
        <translation>异步更新</translation>
    </message>
    <message>
        <source>tokens of each of the sequences that are packed into a row of --seq tokens and do not attend to each other; 0: a row is one sequence</source>
        <translation>打包进一行（--seq 个词元）的每个序列的词元数，这些序列互不关注；0：一行即一个序列</translation>
    </message>
    <message>
        <source>causal models without learned positions, windows and chunks; cp 1</source>
        <translation>因果模型，且没有可学习的位置编码、窗口和分块；cp 为 1</translation>
    </message>
    <message>
        <source>rank of low-rank adapters (LoRA), which are trained instead of the parameters of the model; 0: all parameters are trained</source>
        <translation>低秩适配器（LoRA）的秩，只训练适配器而不训练模型自身的参数；0：训练全部参数</translation>
    </message>
    <message>
        <source>dense transformers; not with --stages, --asynchronous or a policy that moves layers</source>
        <translation>稠密 Transformer；不能与 --stages、--asynchronous 或搬移层的策略同时使用</translation>
    </message>
    <message>
        <source>alpha of the adapters, whose results are multiplied by alpha / rank; 0: the rank</source>
        <translation>适配器的 alpha，其结果乘以 alpha / 秩；0：等于秩</translation>
    </message>
    <message>
        <source>with --lora-rank</source>
        <translation>与 --lora-rank 一起使用</translation>
    </message>
    <message>
        <source>linear layers that have adapters: attention (the product of queries, keys and values, and the output projection) or all (those of the feed-forward layer, too)</source>
        <translation>带适配器的线性层：attention（查询、键、值的乘积和输出投影）或 all（还包括前馈层的线性层）</translation>
    </message>
    <message>
        <source>packed length</source>
        <translation>打包序列长度</translation>
    </message>
    <message>
        <source>lora rank</source>
        <translation>LoRA 秩</translation>
    </message>
    <message>
        <source>lora alpha</source>
        <translation>LoRA alpha</translation>
    </message>
    <message>
        <source>lora targets</source>
        <translation>LoRA 目标层</translation>
    </message>
    <message>
        <source>sum order</source>
        <translation>求和次序</translation>
    </message>
    <message>
        <source>partition</source>
        <translation>求和分块</translation>
    </message>
    <message>
        <source>credit</source>
        <translation>在途额度</translation>
    </message>
    <message>
        <source>compress gradients</source>
        <translation>梯度压缩</translation>
    </message>
    <message>
        <source>compress group</source>
        <translation>压缩分组</translation>
    </message>
    <message>
        <source>compress activations</source>
        <translation>激活压缩</translation>
    </message>
    <message>
        <source>compress dispatch</source>
        <translation>分发压缩</translation>
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
    <message>
        <source>delay annealing</source>
        <translation>延迟退火步数</translation>
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
        <source>pp x virtual_stages stages; the first and the last may have 0 layers</source>
        <translation>共 pp × virtual_stages 个阶段；首尾阶段可以没有层</translation>
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
        <source>context-parallel attention: all-gather or ring of keys and values, or all-to-all of heads; auto: as the framework does</source>
        <translation>上下文并行的注意力：对键和值做 all-gather 或环形传递，或对头做 all-to-all；auto：与框架一致</translation>
    </message>
    <message>
        <source>splits norms and dropout along the sequence over the tensor-parallel GPUs</source>
        <translation>归一化和 dropout 沿序列切分到张量并行 GPU 上</translation>
    </message>
    <message>
        <source>tp divides the sequence</source>
        <translation>tp 整除序列长度</translation>
    </message>
    <message>
        <source>expert-parallel GPUs that share the experts of a layer, out of tp x cp x dp</source>
        <translation>在 tp × cp × dp 中分担一层专家的专家并行 GPU 数</translation>
    </message>
    <message>
        <source>divides the number of experts; ep x etp divides tp x cp x dp</source>
        <translation>整除专家数；ep × etp 整除 tp × cp × dp</translation>
    </message>
    <message>
        <source>expert-tensor-parallel GPUs that share each expert</source>
        <translation>分担每个专家的专家张量并行 GPU 数</translation>
    </message>
    <message>
        <source>divides the width of an expert</source>
        <translation>整除一个专家的宽度</translation>
    </message>
    <message>
        <source>how many rows the most loaded rank of an expert group has: balanced (as every other), equal (equal experts, by chance), gini:0.15, zipf:0.5, 1.3 (times the mean), worst (room for every token), file:F (measured loads of each layer)</source>
        <translation>专家组中负载最高的 rank 有多少行：balanced（与其他相同）、equal（专家均等，随机波动）、gini:0.15、zipf:0.5、1.3（均值的倍数）、worst（容纳所有词元）、file:F（各层实测负载）</translation>
    </message>
    <message>
        <source>tokens for which a rank has no room are dropped when the plan runs</source>
        <translation>计划运行时，没有空位的词元会被丢弃</translation>
    </message>
    <message>
        <source>an expert takes so many times its balanced share of a rank's tokens, the rest are dropped, and its rows are padded to as many; 0: it takes all that choose it</source>
        <translation>一个专家最多接收一个 rank 的词元中其均衡份额的若干倍，其余丢弃，行数补齐到该值；0：接收所有选择它的词元</translation>
    </message>
    <message>
        <source>only the rows that an expert takes are sent, instead of rows padded with zeros to its capacity</source>
        <translation>只发送专家实际接收的行，不用零补齐到其容量</translation>
    </message>
    <message>
        <source>with --expert-capacity</source>
        <translation>与 --expert-capacity 同用</translation>
    </message>
    <message>
        <source>how tokens reach their experts: all-to-all of rows; all-gather of tokens; hierarchical: all-to-all inside the nodes, then between them; once-per-rank and once-per-node: a token is sent once to each rank or node that has experts of it</source>
        <translation>词元到达专家的方式：all-to-all 发送行；all-gather 收集词元；hierarchical 先在节点内、再在节点间做 all-to-all；once-per-rank 与 once-per-node：词元向每个有其专家的 rank 或节点只发送一次</translation>
    </message>
    <message>
        <source>ep above 1; once-per-node: expert groups of more than one node</source>
        <translation>ep 大于 1；once-per-node：专家组跨多个节点</translation>
    </message>
    <message>
        <source>GPUs of an expert group that count as a node; 0: those that are on one</source>
        <translation>一个专家组中算作一个节点的 GPU 数；0：实际位于同一节点的 GPU</translation>
    </message>
    <message>
        <source>with --expert-dispatcher once-per-node; divides ep</source>
        <translation>与 --expert-dispatcher once-per-node 同用；整除 ep</translation>
    </message>
    <message>
        <source>model chunks per pipeline rank</source>
        <translation>每个流水线级的模型块数</translation>
    </message>
    <message>
        <source>more than 1 with interleaved-1f1b, interleaved-zb-1p, interleaved-cells and looped-bfs, 2 with zb-v, v-half, v-min and dualpipe-v</source>
        <translation>interleaved-1f1b、interleaved-zb-1p、interleaved-cells 和 looped-bfs 时大于 1，zb-v、v-half、v-min 和 dualpipe-v 时为 2</translation>
    </message>
    <message>
        <source>pipeline schedule (foreshard list schedules), or file:F for lists of your own; auto: 1f1b, or interleaved-1f1b with virtual stages; best: searched for these stages and their memory</source>
        <translation>流水线调度（见 foreshard list schedules），或用 file:F 给出自己的列表；自动：1f1b，有虚拟阶段时为 interleaved-1f1b；best：按各阶段的用时与显存搜索</translation>
    </message>
    <message>
        <source>those that compute input and weight gradients apart (zb-*, v-*, dualpipe*): ZeRO 0 or 1</source>
        <translation>分开计算输入梯度与权重梯度的调度（zb-*、v-*、dualpipe*）：ZeRO 0 或 1</translation>
    </message>
    <message>
        <source>interleaved-1f1b, interleaved-zb-1p, interleaved-cells: micro-batches per chunk before the next chunk; pipedream-2bw: micro-batches per update; 0: pp</source>
        <translation>interleaved-1f1b、interleaved-zb-1p、interleaved-cells：每个模型块连续处理的微批数；pipedream-2bw：每次更新的微批数；0：pp</translation>
    </message>
    <message>
        <source>1f1b-cells, interleaved-cells: weight gradients of layers run behind the next communication, which they help to hide</source>
        <translation>1f1b-cells、interleaved-cells：各层的权重梯度推迟到下一次通信发起之后计算，以便更多地掩盖通信</translation>
    </message>
    <message>
        <source>a schedule of cells</source>
        <translation>由前向反向合并单元组成的调度</translation>
    </message>
    <message>
        <source>the lists of schedule file, of every pipeline rank: 0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1 (stage, work, micro-batch)</source>
        <translation>file 调度中每个流水线级的列表：0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1（阶段、工作、微批）</translation>
    </message>
    <message>
        <source>every stage and micro-batch has one F and one B, or one I and one W</source>
        <translation>每个阶段和微批有一个 F 和一个 B，或一个 I 和一个 W</translation>
    </message>
    <message>
        <source>zb-2p: the times of forward, input gradient, weight gradient and transfer that its order is made for, in any unit; auto: those of a trial plan</source>
        <translation>zb-2p：生成调度所依据的前向、输入梯度、权重梯度与传输的用时，单位任意；自动：取自试算的计划</translation>
    </message>
    <message>
        <source>at least pp; the last group is full or has at least pp</source>
        <translation>至少 pp；最后一组满组或至少 pp</translation>
    </message>
    <message>
        <source>layers per stage, such as 2,3x14,2 (3x14: fourteen stages of 3); auto: balanced by time; empty: even</source>
        <translation>每个阶段的层数，例如 2,3x14,2（3x14：十四个 3 层的阶段）；auto：按时间均衡；空：均分</translation>
    </message>
    <message>
        <source>adds up to the layers of the model</source>
        <translation>总和等于模型层数</translation>
    </message>
    <message>
        <source>stages with their own dp and tp, instead of --dp, --tp, --pp: 10:2x1,4x3:1x2 is a stage of 10 layers with dp 2, tp 1, then three stages of 4 layers with dp 1, tp 2</source>
        <translation>各阶段有自己的 dp 和 tp，代替 --dp、--tp、--pp：10:2x1,4x3:1x2 表示一个 10 层的阶段（dp 2、tp 1），再接三个 4 层的阶段（dp 1、tp 2）</translation>
    </message>
    <message>
        <source>ZeRO 0, gpipe or 1f1b; each dp divides the micro-batches, each tp the next larger one</source>
        <translation>ZeRO 0，gpipe 或 1f1b；每个 dp 整除微批数，每个 tp 整除下一个更大的 tp</translation>
    </message>
    <message>
        <source>rank order, fastest-varying first; empty: tp,cp,dp,role; role: pipeline rank; dp_outer: ZeRO groups among each other</source>
        <translation>rank 的排列顺序，变化最快的在前；空：tp,cp,dp,role；role：流水线级；dp_outer：ZeRO 组之间</translation>
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
        <source>data-parallel GPUs that ZeRO shards over (tables: zero 2:8 for groups of 8); 0: all</source>
        <translation>ZeRO 在多少块数据并行 GPU 的组内切分（表格中 zero 2:8 表示 8 块一组）；0：全部</translation>
    </message>
    <message>
        <source>host, nvme: no dynamic loss scale</source>
        <translation>host、nvme：不能用动态损失缩放</translation>
    </message>
    <message>
        <source>no gradient clipping, no dynamic loss scale, not with zb-* schedules</source>
        <translation>不能用梯度裁剪、动态损失缩放和 zb-* 调度</translation>
    </message>
    <message>
        <source>host, nvme: no gradient clipping</source>
        <translation>host、nvme：不能用梯度裁剪</translation>
    </message>
    <message>
        <source>not with zb-* schedules, rotor, revolve or graph</source>
        <translation>不能与 zb-* 调度、rotor、revolve 或 graph 同用</translation>
    </message>
    <message>
        <source>divides dp</source>
        <translation>整除 dp</translation>
    </message>
    <message>
        <source>activations that the backward recomputes: none, selective (attention), full, full:N (the first N layers of each stage), full:N,N,.. (of each stage), layers:A-B,.. (of the model), modules such as attention,norm, auto (the fewest layers that make it fit), each:8xfull,none,.. (layer by layer), best (each layer its own way, memory filled); schedules within the free or a given memory: rotor (layers), graph (operators), revolve:N (N checkpoints)</source>
        <translation>反向时重新计算哪些激活：none、selective（注意力）、full、full:N（每阶段前 N 层）、full:N,N,..（各阶段）、layers:A-B,..（模型的层）、模块（如 attention,norm）、auto（放得下所需的最少层数）、each:8xfull,none,..（逐层）、best（每层各自最优，用满显存）；在空闲或给定显存内的方案：rotor（按层）、graph（按算子）、revolve:N（N 个检查点）</translation>
    </message>
    <message>
        <source>context, workspaces and communication buffers per GPU; auto: by GPU and groups</source>
        <translation>每块 GPU 的上下文、工作区和通信缓冲；自动：按 GPU 和通信组</translation>
    </message>
    <message>
        <source>share of the GPU memory that is kept free</source>
        <translation>保留不用的显存比例</translation>
    </message>
    <message>
        <source>how blocks are laid out in memory: fast, by rules; exact, by a search as well where the rules leave gaps</source>
        <translation>各块在内存中的排布方式：fast 按规则；exact 在规则留有空隙处再做搜索</translation>
    </message>
    <message>
        <source>where master copy and moments lie between steps: device, host (its memory) or nvme (its drives)</source>
        <translation>主权重和动量在两步之间存放的位置：device、host（主机内存）或 nvme（固态盘）</translation>
    </message>
    <message>
        <source>share of the optimizer states that stays on the device nevertheless</source>
        <translation>仍留在 GPU 上的优化器状态比例</translation>
    </message>
    <message>
        <source>who runs the optimizer on offloaded states: the processor of the host, or the device, to which they are copied and back; auto: the host</source>
        <translation>由谁更新已卸载的状态：主机处理器，或把状态复制到 GPU 再复制回去；auto：主机</translation>
    </message>
    <message>
        <source>updates a layer as soon as its gradients are summed, between the backwards; with one micro-batch no more than two layers have gradients</source>
        <translation>一层的梯度归约完即在反向之间更新该层；只有一个微批次时，同时有梯度的层不超过两层</translation>
    </message>
    <message>
        <source>runtime policy of a framework (foreshard list policies): when the parameters of a layer are on the device, with its ZeRO stage and what it offloads; auto: that of the framework, where it has one; none: as the other options say</source>
        <translation>某个框架的运行时策略（foreshard list policies）：一层的参数何时在 GPU 上，以及其 ZeRO 阶段和卸载的内容；auto：框架自己的策略（若有）；none：由其他选项决定</translation>
    </message>
    <message>
        <source>where parameters lie between their uses: device, host or nvme; layer by layer they are copied in for each forward and backward</source>
        <translation>参数在两次使用之间存放的位置：device、host 或 nvme；每次前向和反向前逐层复制进来</translation>
    </message>
    <message>
        <source>where gradients lie between the backward of their layer and the update: device, host or nvme</source>
        <translation>梯度从该层反向结束到更新之间存放的位置：device、host 或 nvme</translation>
    </message>
    <message>
        <source>what of a layer is copied out after its forward and back before its backward: none, its inputs, all that it keeps, vdnn (inputs of convolutions) or free-time (value by value, no more than memory asks for)</source>
        <translation>一层的哪些激活在前向之后复制出去、反向之前复制回来：不复制、其输入、它保留的全部、vdnn（卷积的输入）或 free-time（逐个张量，只卸载显存所需的数量）</translation>
    </message>
    <message>
        <source>where offloaded activations go: host (its memory) or nvme (its drives)</source>
        <translation>这些激活的去处：host（主机内存）或 nvme（固态盘）</translation>
    </message>
    <message>
        <source>layers of each stage, the first ones, whose activations are offloaded; 0: all but the last of the model</source>
        <translation>每个阶段中激活被卸载的层数（最前面的几层）；0：除模型最后一层以外的全部</translation>
    </message>
    <message>
        <source>memory of a GPU that the plan may take, its arena, with --offload-activations free-time and --policy greedy; 0: all that it has</source>
        <translation>使用 --offload-activations free-time 和 --policy greedy 时，计划在每个 GPU 上可占用的显存（其分配区）；0：全部显存</translation>
    </message>
    <message>
        <source>number format of activations and matrix products; fp8, nvfp4: the factors of linear layers are in 8 or 4 bits, all else is in bf16; nvfp4 (Blackwell) is simulated, not run</source>
        <translation>激活和矩阵乘法的数值格式；fp8、nvfp4：线性层的因子为 8 位或 4 位，其余为 bf16；nvfp4（Blackwell）只模拟，不能运行</translation>
    </message>
    <message>
        <source>format of the parameters; auto: by precision and framework</source>
        <translation>参数的格式；自动：按精度和框架</translation>
    </message>
    <message>
        <source>format in which gradients are accumulated and reduced; auto: by precision and framework</source>
        <translation>梯度累加和归约的格式；自动：按精度和框架</translation>
    </message>
    <message>
        <source>format of the master copy and the moments; auto: fp32, fp64 with fp64 parameters</source>
        <translation>主权重和动量的格式；自动：fp32，参数为 fp64 时 fp64</translation>
    </message>
    <message>
        <source>attention kernel; auto: flash where the GPU has it</source>
        <translation>注意力内核；自动：GPU 支持时用 flash</translation>
    </message>
    <message>
        <source>dropout probability; auto: as the framework does</source>
        <translation>dropout 概率；auto：与框架一致</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>momentum of sgd; 0: none</source>
        <translation>sgd 的动量；0：无</translation>
    </message>
    <message>
        <source>gradient clipping by global norm; 0: off; auto: as the framework does</source>
        <translation>按全局范数裁剪梯度；0：关闭；auto：与框架一致</translation>
    </message>
    <message>
        <source>fixed loss scale; 0: dynamic, steps that overflow are skipped</source>
        <translation>固定的损失缩放；0：动态，溢出的步会被跳过</translation>
    </message>
    <message>
        <source>PipeMare's rule, for schedules without flushes: the learning rate of a stage is divided by its delay, and less and less over this number of updates; 0: not divided</source>
        <translation>PipeMare 的规则，用于不排空流水线的调度：每个阶段的学习率除以它的延迟，在这么多次更新内逐渐恢复；0：不除</translation>
    </message>
    <message>
        <source>pads the vocabulary to a multiple of this times tp; 0: as the framework does</source>
        <translation>词表补齐到此数 × tp 的倍数；0：与框架一致</translation>
    </message>
    <message>
        <source>size of a gradient bucket; 0: max(40e6, 1e6 dp) elements; auto: chosen, with --sum-order priority parts and credit too</source>
        <translation>梯度桶大小；0：max(40e6, 1e6 dp) 个元素；auto：自动选择，配合 --sum-order priority 时也选择分块与额度</translation>
    </message>
    <message>
        <source>communication that overlaps with computation: any of grad, param (tables: zero 1+), p2p and tp, or none; auto: as the framework does</source>
        <translation>与计算重叠的通信：grad、param（表格中 zero 1+）、p2p、tp 中的任意几个，或 none；auto：与框架一致</translation>
    </message>
    <message>
        <source>algorithm of collectives; where it does not apply, a ring; auto: the cheapest for each</source>
        <translation>集合通信的算法；不适用时用环形；auto：各取代价最低者</translation>
    </message>
    <message>
        <source>members of a group that serve, 0: all; with --asynchronous GPUs that serve and do not train</source>
        <translation>组内充当服务器的成员数，0：全部；与 --asynchronous 同用时为只服务、不训练的 GPU 数</translation>
    </message>
    <message>
        <source>replicas do not wait for each other: parameter servers on GPUs of their own (--servers; by default one for each rank of a tensor-parallel group) take their gradients in turn, update with each, and send the parameters back</source>
        <translation>各副本互不等待：参数服务器各占自己的 GPU（--servers；默认张量并行组的每个 rank 一个），依次接收各副本的梯度，逐个更新，再发回参数</translation>
    </message>
    <message>
        <source>cp 1; no experts, ZeRO, offload or dynamic loss scale; clipping with one server and workers of one GPU</source>
        <translation>cp 为 1；不与专家、ZeRO、卸载或动态损失缩放同用；裁剪需要一个服务器和各占一块 GPU 的工作者</translation>
    </message>
    <message>
        <source>with --algorithm parameter-server or --asynchronous</source>
        <translation>与 --algorithm parameter-server 或 --asynchronous 同用</translation>
    </message>
    <message>
        <source>which members of a group, or with --asynchronous which GPUs, serve: the first ones, at equal distances over all (spread), or one after another over the nodes (nodes)</source>
        <translation>由组内哪些成员（与 --asynchronous 同用时为哪些 GPU）充当服务器：最前面的（first）、等距分布（spread）或逐个分到各节点（nodes）</translation>
    </message>
    <message>
        <source>with --servers below the members of a group, or --asynchronous</source>
        <translation>需 --servers 少于组的成员数，或 --asynchronous</translation>
    </message>
    <message>
        <source>what may be under way at once of sums of gradients; 0: one part</source>
        <translation>梯度求和同时在途的数据量；0：一份</translation>
    </message>
    <message>
        <source>with --sum-order priority or --algorithm gather-to-root</source>
        <translation>与 --sum-order priority 或 --algorithm gather-to-root 同用</translation>
    </message>
    <message>
        <source>sums of gradients as they are ready, or first what the next forward needs first, which then waits for nothing else</source>
        <translation>梯度求和的次序：按就绪先后，或先传下一次前向最先需要的，前向不再等待其余部分</translation>
    </message>
    <message>
        <source>parts of sums of gradients, which others may overtake; 0: whole buckets</source>
        <translation>梯度求和的分块大小，块间可被更优先者插队；0：整桶</translation>
    </message>
    <message>
        <source>with --sum-order priority</source>
        <translation>与 --sum-order priority 同用</translation>
    </message>
    <message>
        <source>parts along the samples of a micro-batch that attention and MLP of a layer are cut into, one number for both or one each, or layer by layer 2,4x11;1,8: the sum over tp of a part overlaps with the next part; auto: chosen for each layer</source>
        <translation>把每层的注意力和 MLP 沿微批次的样本切成的块数，一个数字用于两者或各给一个，也可逐层给出，如 2,4x11;1,8：一块的 tp 求和与下一块的计算重叠；auto：为每层自动选择</translation>
    </message>
    <message>
        <source>tp above 1; divide micro_batch; not with cp, stages or fp8</source>
        <translation>tp 大于 1；块数要整除 micro_batch；不能与 cp、stages 或 fp8 同用</translation>
    </message>
    <message>
        <source>how replicas send gradients: dgc:SHARE (the largest, the rest waits), one-bit (signs; with Adam one-bit:N, moments after N updates), eight-bit, segmented:BITS (levels for a centre and two tails) or segmented:BITSxSEGMENTS</source>
        <translation>副本之间如何发送梯度：dgc:比例（最大的若干个，其余留到以后），one-bit（符号；使用 Adam 时为 one-bit:N，即 N 次更新之后发送一阶矩），eight-bit，segmented:位数（中心与两尾分级）或 segmented:位数x段数</translation>
    </message>
    <message>
        <source>no dynamic loss scale, gradients and parameters on the device; with ZeRO not one-bit with Adam, from ZeRO 2 on not dgc</source>
        <translation>无动态损失缩放，梯度和参数在设备上；使用 ZeRO 时不能用配合 Adam 的 one-bit，从 ZeRO 2 起不能用 dgc</translation>
    </message>
    <message>
        <source>data-parallel GPUs, with context-parallel ones, that add their gradients as they are before each sends codes of its part to the other groups; 0: those of a node; 1: all send codes</source>
        <translation>数据并行（连同上下文并行）的 GPU 中，先直接相加梯度、再由每张卡向其他组发送自己那部分编码的卡数；0：同一节点的卡；1：全部发送编码</translation>
    </message>
    <message>
        <source>with --compress-gradients; divides dp x cp; ZeRO 0, no experts over several GPUs, not one-bit with Adam</source>
        <translation>需配合 --compress-gradients；能整除 dp x cp；ZeRO 0，专家不跨多张 GPU，不与 Adam 的 one-bit 合用</translation>
    </message>
    <message>
        <source>how tensor-parallel ranks sum activations: token-topk:SHARE (rows of the tokens with the most attention), segmented:BITS or segmented:BITSxSEGMENTS, or both: token-topk:SHARE,segmented:BITS</source>
        <translation>张量并行各卡如何对激活求和：token-topk:比例（注意力最多的 token 的行），segmented:位数 或 segmented:位数x段数，或两者兼用：token-topk:比例,segmented:位数</translation>
    </message>
    <message>
        <source>token-topk: --attention unfused, cp 1</source>
        <translation>token-topk：--attention unfused，cp 1</translation>
    </message>
    <message>
        <source>how rows of tokens are sent to their experts, and gradients of results: fp8 (E4M3 with a scale for 128 numbers) or eight-bit (integers with a scale for 256); the way back stays as it is</source>
        <translation>词元的行发往专家、以及结果的梯度的发送格式：fp8（E4M3，每 128 个数一个缩放因子）或 eight-bit（整数，每 256 个数一个缩放因子）；返回方向保持不变</translation>
    </message>
    <message>
        <source>ep above 1; not with --expert-dispatcher all-gather</source>
        <translation>ep 大于 1；不与 --expert-dispatcher all-gather 同用</translation>
    </message>
    <message>
        <source>training framework whose defaults and overheads are assumed</source>
        <translation>假定采用其默认值和开销的训练框架</translation>
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
