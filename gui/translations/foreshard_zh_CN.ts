<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>Rows</name>
    <message>
        <source>replica %1</source>
        <translation>副本 %1</translation>
    </message>
    <message>
        <source>TP group %1</source>
        <translation>TP 组 %1</translation>
    </message>
    <message>
        <source>1 GPU</source>
        <translation>1 个 GPU</translation>
    </message>
    <message>
        <source>%1 GPUs</source>
        <translation>%1 个 GPU</translation>
    </message>
    <message>
        <source>node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>rank %1</source>
        <translation>rank %1</translation>
    </message>
</context>
<context>
    <name>Topology</name>
    <message>
        <source>spine</source>
        <translation>核心交换机</translation>
    </message>
    <message>
        <source>leaf</source>
        <translation>叶交换机</translation>
    </message>
    <message>
        <source>rail %1</source>
        <translation>轨道 %1</translation>
    </message>
</context>
<context>
    <name>Words</name>
    <message>
        <source>samples per second</source>
        <translation>每秒样本</translation>
    </message>
    <message>
        <source>tokens per second</source>
        <translation>每秒词元</translation>
    </message>
    <message>
        <source>stages %1</source>
        <translation>阶段 %1</translation>
    </message>
    <message>
        <source>stage %1</source>
        <translation>阶段 %1</translation>
    </message>
    <message>
        <source>%1 (%2 ranks)</source>
        <translation>%1（%2 个 rank）</translation>
    </message>
    <message>
        <source>%1 (rank %2)</source>
        <translation>%1（rank %2）</translation>
    </message>
    <message>
        <source>warm-up</source>
        <translation>预热</translation>
    </message>
    <message>
        <source>drain</source>
        <translation>排空</translation>
    </message>
    <message>
        <source>dependency</source>
        <translation>依赖等待</translation>
    </message>
    <message>
        <source>exposed communication</source>
        <translation>暴露通信</translation>
    </message>
    <message>
        <source>straggler</source>
        <translation>慢节点</translation>
    </message>
    <message>
        <source>barrier</source>
        <translation>同步屏障</translation>
    </message>
    <message>
        <source>expert imbalance</source>
        <translation>专家负载不均</translation>
    </message>
    <message>
        <source>Another rank of the expert group has more rows to compute.</source>
        <translation>专家组中另一个 rank 要计算的行更多。</translation>
    </message>
    <message>
        <source>The pipeline is filling: this stage has not seen its first backward yet.</source>
        <translation>流水线正在填充：该阶段还没有开始第一次反向。</translation>
    </message>
    <message>
        <source>The pipeline is emptying: this stage has no forward left to fill the wait with.</source>
        <translation>流水线正在排空：该阶段已没有前向可以填补等待。</translation>
    </message>
    <message>
        <source>Another stage was still computing what this one needs next.</source>
        <translation>另一个阶段还在计算它接下来需要的数据。</translation>
    </message>
    <message>
        <source>Data was on the wire and nothing was left to compute meanwhile.</source>
        <translation>数据正在传输，期间没有可做的计算。</translation>
    </message>
    <message>
        <source>A slower rank of the same stage came late to a collective.</source>
        <translation>同一阶段中较慢的 rank 迟到了集合通信。</translation>
    </message>
    <message>
        <source>The work is done; the step ends when the last rank is done.</source>
        <translation>工作已完成；最后一个 rank 完成时这一步才结束。</translation>
    </message>
    <message>
        <source>parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>scratch</source>
        <translation>临时</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>framework</source>
        <translation>框架</translation>
    </message>
    <message>
        <source>receive gradient</source>
        <translation>接收梯度</translation>
    </message>
    <message>
        <source>send gradient</source>
        <translation>发送梯度</translation>
    </message>
    <message>
        <source>receive input</source>
        <translation>接收输入</translation>
    </message>
    <message>
        <source>send output</source>
        <translation>发送输出</translation>
    </message>
    <message>
        <source>hand over output</source>
        <translation>移交输出</translation>
    </message>
    <message>
        <source>add gradients</source>
        <translation>累加梯度</translation>
    </message>
    <message>
        <source>copy gradient</source>
        <translation>复制梯度</translation>
    </message>
    <message>
        <source>gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>clip</source>
        <translation>裁剪</translation>
    </message>
    <message>
        <source>all-gather parameters</source>
        <translation>all-gather 参数</translation>
    </message>
    <message>
        <source>loss scale</source>
        <translation>损失缩放</translation>
    </message>
    <message>
        <source>%1 of %2 usable</source>
        <translation>%1 / 可用 %2</translation>
    </message>
    <message>
        <source>%1 of %2 GiB usable</source>
        <translation>%1 / 可用 %2 GiB</translation>
    </message>
    <message>
        <source>%1 does not fit: %2 reserved, %3 usable (%4 too much). Most of it: %5, %6.</source>
        <translation>%1 放不下：预留 %2，可用 %3（多出 %4）。其中最多的是%5：%6。</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>collectives</source>
        <translation>集合通信</translation>
    </message>
    <message>
        <source>transfers between stages</source>
        <translation>阶段间传输</translation>
    </message>
    <message>
        <source>copies</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>等待</translation>
    </message>
    <message>
        <source>hand over gradient</source>
        <translation>移交梯度</translation>
    </message>
    <message>
        <source>sum over tp</source>
        <translation>张量并行求和</translation>
    </message>
    <message>
        <source>sum of tied embeddings</source>
        <translation>共享嵌入求和</translation>
    </message>
    <message>
        <source>sum of norms</source>
        <translation>范数求和</translation>
    </message>
    <message>
        <source>reduce-scatter gradients</source>
        <translation>reduce-scatter 梯度</translation>
    </message>
    <message>
        <source>all-reduce shards</source>
        <translation>all-reduce 分片</translation>
    </message>
    <message>
        <source>all-reduce gradients</source>
        <translation>all-reduce 梯度</translation>
    </message>
    <message>
        <source>an unknown device</source>
        <translation>未知设备</translation>
    </message>
</context>
<context>
    <name>foreshard::Banner</name>
    <message>
        <source>Close the message</source>
        <translation>关闭消息</translation>
    </message>
</context>
<context>
    <name>foreshard::BookmarkList</name>
    <message>
        <source>key</source>
        <translation>键</translation>
    </message>
    <message>
        <source>time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>note</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Bookmarks</source>
        <translation>书签</translation>
    </message>
    <message>
        <source>No bookmarks yet. Ctrl+B marks the selected range, or the moment under the mouse.</source>
        <translation>还没有书签。按 Ctrl+B 标记选中的时间段，或鼠标所在的时刻。</translation>
    </message>
</context>
<context>
    <name>foreshard::Child</name>
    <message numerus="yes">
        <source>foreshard said nothing for %n second(s) and was stopped.</source>
        <translation>
            <numerusform>foreshard 在 %n 秒内没有任何输出，已被终止。</numerusform>
        </translation>
    </message>
    <message>
        <source>foreshard ended unexpectedly (code %1). %2</source>
        <translation>foreshard 意外结束（代码 %1）。%2</translation>
    </message>
    <message>
        <source>foreshard ended with code %1 and no message.</source>
        <translation>foreshard 以代码 %1 结束，没有任何说明。</translation>
    </message>
    <message>
        <source>The program %1 cannot be started: %2</source>
        <translation>无法启动程序 %1：%2</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>已停止。</translation>
    </message>
    <message>
        <source>foreshard wrote more than 256 MiB and was stopped.</source>
        <translation>foreshard 的输出超过 256 MiB，已被终止。</translation>
    </message>
    <message>
        <source>foreshard was ended from outside (signal %1).</source>
        <translation>foreshard 被外部终止（信号 %1）。</translation>
    </message>
    <message>
        <source>foreshard crashed (code %1). %2</source>
        <translation>foreshard 崩溃（代码 %1）。%2</translation>
    </message>
</context>
<context>
    <name>foreshard::CompanionTable</name>
    <message>
        <source>Filter</source>
        <translation>筛选</translation>
    </message>
    <message>
        <source>Filter of the table</source>
        <translation>表格筛选</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>表格</translation>
    </message>
</context>
<context>
    <name>foreshard::CompareView</name>
    <message>
        <source>Comparison</source>
        <translation>对比</translation>
    </message>
    <message>
        <source>what</source>
        <translation>项目</translation>
    </message>
    <message>
        <source>change</source>
        <translation>变化</translation>
    </message>
    <message>
        <source>Table of differences</source>
        <translation>差异表</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source> on </source>
        <translation>，</translation>
    </message>
    <message>
        <source>A   no baseline yet: Plan &gt; Use as baseline</source>
        <translation>A   还没有基准：方案 &gt; 设为基准</translation>
    </message>
    <message>
        <source>B   nothing yet: Ctrl+click a plan of the search, or load a measured result</source>
        <translation>B   暂无：按住 Ctrl 单击搜索到的方案，或载入实测结果</translation>
    </message>
    <message>
        <source>on this machine's processor: not comparable with the prediction</source>
        <translation>在本机处理器上：与预测不可比较</translation>
    </message>
    <message>
        <source>measured on %1</source>
        <translation>在 %1 上实测</translation>
    </message>
    <message>
        <source>another device than %1: times are not comparable</source>
        <translation>与 %1 不是同一种设备：时间不可比较</translation>
    </message>
    <message>
        <source>another model than A: no differences are told</source>
        <translation>与 A 不是同一模型：不给出差异</translation>
    </message>
</context>
<context>
    <name>foreshard::PolicyView</name>
    <message>
        <source>Runtime policies</source>
        <translation>运行时策略</translation>
    </message>
    <message>
        <source>Simulate all policies</source>
        <translation>模拟所有策略</translation>
    </message>
    <message>
        <source>The chosen job under the runtime policy of every framework; each has a ZeRO stage of its own</source>
        <translation>在每个框架的运行时策略下模拟所选作业；各策略有自己的 ZeRO 阶段</translation>
    </message>
    <message>
        <source>Not simulated yet.</source>
        <translation>尚未模拟。</translation>
    </message>
    <message>
        <source>Runtime policies side by side</source>
        <translation>并列的运行时策略</translation>
    </message>
    <message>
        <source>The choices have changed since: simulate again.</source>
        <translation>选项已更改：请重新模拟。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Simulating …</source>
        <translation>正在模拟……</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>已停止。</translation>
    </message>
    <message>
        <source>No policy is possible with these choices.</source>
        <translation>这些选项下没有可行的策略。</translation>
    </message>
    <message>
        <source>%1 is the fastest: %2. A click loads a policy, Ctrl+click compares it with the shown plan.</source>
        <translation>%1 最快：%2。单击载入策略，Ctrl+单击与所示计划比较。</translation>
    </message>
</context>
<context>
    <name>foreshard::PolicyRows</name>
    <message>
        <source>fastest</source>
        <translation>最快</translation>
    </message>
    <message>
        <source>Policy</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>Of</source>
        <translation>属于</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>步时</translation>
    </message>
    <message>
        <source>Slower by</source>
        <translation>慢</translation>
    </message>
    <message>
        <source>Per second</source>
        <translation>每秒</translation>
    </message>
    <message>
        <source>Peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>Arena</source>
        <translation>内存池</translation>
    </message>
    <message>
        <source>Gathered</source>
        <translation>聚集</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source>Name of the runtime policy, as --policy takes it</source>
        <translation>运行时策略的名称，与 --policy 所用相同</translation>
    </message>
    <message>
        <source>The framework whose runtime works so</source>
        <translation>采用此运行方式的框架</translation>
    </message>
    <message>
        <source>Time of an iteration</source>
        <translation>一次迭代的时间</translation>
    </message>
    <message>
        <source>Over the fastest policy</source>
        <translation>相对于最快的策略</translation>
    </message>
    <message>
        <source>Tokens, of models without tokens samples</source>
        <translation>词元；没有词元的模型为样本</translation>
    </message>
    <message>
        <source>The most that is alive at once on the fullest GPU</source>
        <translation>占用最多的 GPU 上同时存活的最大量</translation>
    </message>
    <message>
        <source>What the fullest GPU reserves</source>
        <translation>占用最多的 GPU 预留的量</translation>
    </message>
    <message>
        <source>Parameters that a GPU gathers in a step</source>
        <translation>一个 GPU 每步聚集的参数</translation>
    </message>
    <message>
        <source>What a GPU copies to and from host memory and drives in a step</source>
        <translation>一个 GPU 每步与主机内存和硬盘之间拷贝的量</translation>
    </message>
</context>
<context>
    <name>foreshard::HelpOverlay</name>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>编辑</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>View</source>
        <translation>视图</translation>
    </message>
    <message>
        <source>Go</source>
        <translation>转到</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>In the timeline</source>
        <translation>时间线中</translation>
    </message>
    <message>
        <source>Ctrl+wheel, W, S</source>
        <translation>Ctrl+滚轮、W、S</translation>
    </message>
    <message>
        <source>zoom in, zoom out</source>
        <translation>放大、缩小</translation>
    </message>
    <message>
        <source>Shift+wheel, A, D</source>
        <translation>Shift+滚轮、A、D</translation>
    </message>
    <message>
        <source>pan left, pan right</source>
        <translation>左移、右移</translation>
    </message>
    <message>
        <source>drag</source>
        <translation>拖动</translation>
    </message>
    <message>
        <source>select a range</source>
        <translation>选择一段时间</translation>
    </message>
    <message>
        <source>click</source>
        <translation>单击</translation>
    </message>
    <message>
        <source>what it is and why</source>
        <translation>它是什么、为什么</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>按键</translation>
    </message>
</context>
<context>
    <name>foreshard::InspectorView</name>
    <message>
        <source>Inspector</source>
        <translation>详情</translation>
    </message>
    <message>
        <source>What is known about the selection</source>
        <translation>选中项的详情</translation>
    </message>
</context>
<context>
    <name>foreshard::KeyDialog</name>
    <message>
        <source>Keyboard</source>
        <translation>键盘</translation>
    </message>
    <message>
        <source>action</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>keys</source>
        <translation>按键</translation>
    </message>
    <message>
        <source>Actions and their keys</source>
        <translation>操作及其按键</translation>
    </message>
    <message>
        <source>New keys</source>
        <translation>新按键</translation>
    </message>
    <message>
        <source>Set</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>清除</translation>
    </message>
    <message>
        <source>Reset all to defaults</source>
        <translation>全部恢复默认</translation>
    </message>
    <message>
        <source>%1 has these keys now and would lose them.</source>
        <translation>这些按键现在属于“%1”，设置后它将失去它们。</translation>
    </message>
</context>
<context>
    <name>foreshard::KpiStrip</name>
    <message>
        <source>cost / M samples</source>
        <translation>成本/百万样本</translation>
    </message>
    <message>
        <source>same</source>
        <translation>相同</translation>
    </message>
    <message>
        <source>%1 points</source>
        <translation>%1 个百分点</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>samples/s</source>
        <translation>样本/秒</translation>
    </message>
    <message>
        <source>MFU</source>
        <translation>MFU</translation>
    </message>
    <message>
        <source>bubble</source>
        <translation>气泡</translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>cost / M tokens</source>
        <translation>成本/百万词元</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU 数</translation>
    </message>
    <message numerus="yes">
        <source>%n stage(s)</source>
        <translation>
            <numerusform>%n 个阶段</numerusform>
        </translation>
    </message>
    <message>
        <source>step time</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>comm. not hidden</source>
        <translation>未隐藏的通信</translation>
    </message>
    <message>
        <source>peak memory (%1)</source>
        <translation>峰值内存（%1）</translation>
    </message>
    <message>
        <source>of %1 usable</source>
        <translation>可用 %1</translation>
    </message>
    <message>
        <source> · A %1</source>
        <translation> · A %1</translation>
    </message>
    <message>
        <source>A: another model (%1)</source>
        <translation>A：另一个模型（%1）</translation>
    </message>
    <message>
        <source>of %1 used</source>
        <translation>共 %1，部分闲置</translation>
    </message>
    <message>
        <source>%1 of the cluster</source>
        <translation>占集群 %1</translation>
    </message>
    <message>
        <source>not hidden</source>
        <translation>未被掩盖</translation>
    </message>
    <message>
        <source>peak memory</source>
        <translation>峰值显存</translation>
    </message>
    <message>
        <source>cost / M tok.</source>
        <translation>百万词元成本</translation>
    </message>
    <message>
        <source>cost / M sam.</source>
        <translation>百万样本成本</translation>
    </message>
    <message>
        <source>A: another device (%1)</source>
        <translation>A：另一种设备（%1）</translation>
    </message>
    <message>
        <source>A: other model</source>
        <translation>A：其他模型</translation>
    </message>
    <message>
        <source>A: other device</source>
        <translation>A：其他设备</translation>
    </message>
    <message>
        <source>%1 of all</source>
        <translation>占全部 %1</translation>
    </message>
</context>
<context>
    <name>foreshard::LossCurve</name>
    <message>
        <source>Loss by step</source>
        <translation>每步的损失</translation>
    </message>
    <message>
        <source>step %1: loss %2</source>
        <translation>第 %1 步：损失 %2</translation>
    </message>
    <message>
        <source>loss by step</source>
        <translation>每步的损失</translation>
    </message>
    <message>
        <source>step %1</source>
        <translation>第 %1 步</translation>
    </message>
</context>
<context>
    <name>foreshard::MainWindow</name>
    <message>
        <source>Load a policy</source>
        <translation>载入策略</translation>
    </message>
    <message>
        <source>Load a strategy</source>
        <translation>载入策略</translation>
    </message>
    <message>
        <source>Apply a suggestion</source>
        <translation>应用建议</translation>
    </message>
    <message>
        <source>Change a setting</source>
        <translation>改变一个设置</translation>
    </message>
    <message>
        <source>This is GPT-3 with 175 billion parameters on 1024 A100 GPUs. Change any field: the estimate follows while you type, the simulation a moment later. What is left at Auto is chosen for you.</source>
        <translation>这是在 1024 块 A100 上训练的 GPT-3（1750 亿参数）。修改任意字段：输入时即时估算，稍后给出模拟结果。留为“自动”的由程序选择。</translation>
    </message>
    <message>
        <source>Read the bubbles</source>
        <translation>看懂气泡</translation>
    </message>
    <message>
        <source>Every row is a pipeline stage. Hatched stretches are GPUs that wait. Click one: the inspector names the cause and lists changes that would shorten it, with simulated gains.</source>
        <translation>每一行是一个流水线阶段。带斜线的部分是正在等待的 GPU。点击一处：检查器会说明原因，并列出能缩短它的改动及模拟得到的收益。</translation>
    </message>
    <message>
        <source>Let it search</source>
        <translation>自动搜索</translation>
    </message>
    <message>
        <source>The search tries every parallel strategy and plots time against memory. A click loads a strategy; Ctrl+click compares it with the current one.</source>
        <translation>搜索会尝试所有并行策略，并绘制时间与内存的关系。点击载入一个策略；Ctrl+点击则与当前策略比较。</translation>
    </message>
    <message>
        <source>The program foreshard is neither beside this one nor on PATH: results can be opened, but nothing can be simulated.</source>
        <translation>在本程序旁边和 PATH 中都没有找到 foreshard：只能查看结果，不能生成。</translation>
    </message>
    <message>
        <source>Load a small plan</source>
        <translation>载入小方案</translation>
    </message>
    <message>
        <source>There is nothing to show.</source>
        <translation>没有可显示的内容。</translation>
    </message>
    <message>
        <source>Search again</source>
        <translation>重新搜索</translation>
    </message>
</context>
<context>
    <name>foreshard::Notices</name>
    <message>
        <source>Progress of the simulation</source>
        <translation>模拟进度</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
</context>
<context>
    <name>foreshard::PlanViews</name>
    <message>
        <source>Policies</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>表格</translation>
    </message>
    <message>
        <source>Views</source>
        <translation>视图</translation>
    </message>
    <message>
        <source>Layout of the comparison</source>
        <translation>比较的布局</translation>
    </message>
    <message>
        <source>Stacked</source>
        <translation>上下排列</translation>
    </message>
    <message>
        <source>Interleaved</source>
        <translation>交错</translation>
    </message>
    <message>
        <source>Timeline and memory</source>
        <translation>时间线与显存</translation>
    </message>
    <message>
        <source>Topology</source>
        <translation>拓扑</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>对比</translation>
    </message>
</context>
<context>
    <name>foreshard::DockPanels</name>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Strategy</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>Inspector</source>
        <translation>详情</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Bookmarks</source>
        <translation>书签</translation>
    </message>
</context>
<context>
    <name>foreshard::ShownPlan</name>
    <message>
        <source>Baseline (A): %1, %2.</source>
        <translation>基准 (A)：%1，%2。</translation>
    </message>
</context>
<context>
    <name>foreshard::ChosenPlan</name>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>≈ %1 per step · %2 reserved · bound by %3</source>
        <translation>≈ 每步 %1 · 预留 %2 · 瓶颈：%3</translation>
    </message>
    <message>
        <source>%1 per step in the file</source>
        <translation>文件中每步 %1</translation>
    </message>
    <message>
        <source>%1 on %2: %3 per step</source>
        <translation>%1，%2：每步 %3</translation>
    </message>
    <message>
        <source>Simulating …</source>
        <translation>正在模拟 …</translation>
    </message>
    <message>
        <source>The picture is of the previous strategy.</source>
        <translation>画面属于之前的策略。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Simulate</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>已停止。</translation>
    </message>
    <message>
        <source>Without the program foreshard nothing can be simulated.</source>
        <translation>没有 foreshard 程序就无法模拟。</translation>
    </message>
    <message>
        <source>This strategy cannot be simulated.</source>
        <translation>无法模拟此策略。</translation>
    </message>
    <message>
        <source>Choose a model.</source>
        <translation>请选择模型。</translation>
    </message>
    <message>
        <source>Choose a cluster to simulate %1 on.</source>
        <translation>请选择用来模拟 %1 的集群。</translation>
    </message>
    <message>
        <source>Too many micro-batches to estimate while you type.</source>
        <translation>微批次太多，输入时不做估计。</translation>
    </message>
    <message>
        <source>No model called &quot;%1&quot;. Choose one from the list or open a file.</source>
        <translation>没有名为“%1”的模型。请从列表中选择或打开文件。</translation>
    </message>
    <message>
        <source>No cluster called &quot;%1&quot;. Choose one from the list or open a file.</source>
        <translation>没有名为“%1”的集群。请从列表中选择或打开文件。</translation>
    </message>
    <message>
        <source>This file is of a %1 whose fields were changed (%2 parameters instead of %3). What was changed is not in the file: a changed knob simulates the %1 as it is.</source>
        <translation>此文件出自改动过字段的 %1（%2 个参数，而非 %3 个）。文件中没有记下改动：改变旋钮后模拟的是原样的 %1。</translation>
    </message>
    <message>
        <source>%1. Choose a smaller global batch.</source>
        <translation>%1。请选择更小的全局批大小。</translation>
    </message>
</context>
<context>
    <name>foreshard::WindowFiles</name>
    <message>
        <source>%1 has changed on disk.</source>
        <translation>%1 在磁盘上已被修改。</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>重新载入</translation>
    </message>
    <message>
        <source>Open a strategy</source>
        <translation>打开策略</translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation>打开模型</translation>
    </message>
    <message>
        <source>Open a cluster</source>
        <translation>打开集群</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Files of foreshard (*.json *.result);;All files (*)</source>
        <translation>foreshard 文件 (*.json *.result);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Save workspace</source>
        <translation>保存工作区</translation>
    </message>
    <message>
        <source>Workspaces (*.workspace.json)</source>
        <translation>工作区 (*.workspace.json)</translation>
    </message>
    <message>
        <source>Saved %1.</source>
        <translation>已保存 %1。</translation>
    </message>
    <message>
        <source>No recent files</source>
        <translation>没有最近的文件</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>%1 is not a foreshard file. foreshard opens workspaces, results, plans, strategies, models and clusters.</source>
        <translation>%1 不是 foreshard 文件。可以打开工作区、结果、方案、策略、模型和集群。</translation>
    </message>
    <message>
        <source>Cannot save %1: %2.</source>
        <translation>无法保存 %1：%2。</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <translation>%1，位于 %2</translation>
    </message>
</context>
<context>
    <name>foreshard::WindowMenus</name>
    <message>
        <source>Compare runtime &amp;policies</source>
        <translation>比较运行时策略(&amp;P)</translation>
    </message>
    <message>
        <source>Cluster %1</source>
        <translation>集群：%1</translation>
    </message>
    <message>
        <source>T&amp;able</source>
        <translation>表格(&amp;A)</translation>
    </message>
    <message>
        <source>Show as ta&amp;ble</source>
        <translation>以表格显示(&amp;B)</translation>
    </message>
    <message>
        <source>&amp;Memory shown</source>
        <translation>显示的内存(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Device memory</source>
        <translation>设备内存(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Pinned host memory</source>
        <translation>锁页主机内存(&amp;P)</translation>
    </message>
    <message>
        <source>Pageable &amp;host memory</source>
        <translation>可分页主机内存(&amp;H)</translation>
    </message>
    <message>
        <source>N&amp;VMe</source>
        <translation>NVMe(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Show in timeline</source>
        <translation>在时间线中显示(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;All</source>
        <translation>全部(&amp;A)</translation>
    </message>
    <message>
        <source>Ar&amp;rows</source>
        <translation>箭头(&amp;R)</translation>
    </message>
    <message>
        <source>To the &amp;blocking operation</source>
        <translation>到阻塞它的操作(&amp;B)</translation>
    </message>
    <message>
        <source>Along the blocking &amp;chain</source>
        <translation>沿阻塞链(&amp;C)</translation>
    </message>
    <message>
        <source>The critical &amp;path of the run</source>
        <translation>整个运行的关键路径(&amp;P)</translation>
    </message>
    <message>
        <source>Zoom &amp;in</source>
        <translation>放大(&amp;I)</translation>
    </message>
    <message>
        <source>Zoom ou&amp;t</source>
        <translation>缩小(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;First divergence</source>
        <translation>首个分歧(&amp;F)</translation>
    </message>
    <message>
        <source>No divergence: the results are equal, or there is only one.</source>
        <translation>没有分歧：两个结果相同，或只有一个结果。</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Open …</source>
        <translation>打开(&amp;O) …</translation>
    </message>
    <message>
        <source>Open &amp;recent</source>
        <translation>最近打开(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Save workspace</source>
        <translation>保存工作区(&amp;S)</translation>
    </message>
    <message>
        <source>Save workspace &amp;as …</source>
        <translation>工作区另存为(&amp;A) …</translation>
    </message>
    <message>
        <source>Open &amp;example: GPT-3 175B</source>
        <translation>打开示例：GPT-3 175B(&amp;E)</translation>
    </message>
    <message>
        <source>Open the example</source>
        <translation>打开示例</translation>
    </message>
    <message>
        <source>&amp;Export</source>
        <translation>导出(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;Report (HTML) …</source>
        <translation>报告 (HTML)(&amp;R) …</translation>
    </message>
    <message>
        <source>Reports (*.html)</source>
        <translation>报告 (*.html)</translation>
    </message>
    <message>
        <source>Picture of the window (&amp;PNG) …</source>
        <translation>窗口图片 (PNG)(&amp;P) …</translation>
    </message>
    <message>
        <source>Pictures (*.png)</source>
        <translation>图片 (*.png)</translation>
    </message>
    <message>
        <source>Timeline and memory (&amp;SVG) …</source>
        <translation>时间线与显存 (SVG)(&amp;S) …</translation>
    </message>
    <message>
        <source>Vector pictures (*.svg)</source>
        <translation>矢量图 (*.svg)</translation>
    </message>
    <message>
        <source>Timeline and memory (P&amp;DF) …</source>
        <translation>时间线与显存 (PDF)(&amp;D) …</translation>
    </message>
    <message>
        <source>Documents (*.pdf)</source>
        <translation>文档 (*.pdf)</translation>
    </message>
    <message>
        <source>&amp;Spans (CSV) …</source>
        <translation>时间段 (CSV)(&amp;S) …</translation>
    </message>
    <message>
        <source>Tables (*.csv)</source>
        <translation>表格 (*.csv)</translation>
    </message>
    <message>
        <source>S&amp;tages (CSV) …</source>
        <translation>阶段 (CSV)(&amp;T) …</translation>
    </message>
    <message>
        <source>&amp;Chrome trace (for Perfetto) …</source>
        <translation>Chrome 跟踪（用于 Perfetto）(&amp;C) …</translation>
    </message>
    <message>
        <source>Traces (*.json)</source>
        <translation>跟踪 (*.json)</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>编辑(&amp;E)</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Redo</source>
        <translation>重做</translation>
    </message>
    <message>
        <source>&amp;Find …</source>
        <translation>查找(&amp;F) …</translation>
    </message>
    <message>
        <source>&amp;Command palette …</source>
        <translation>命令面板(&amp;C) …</translation>
    </message>
    <message>
        <source>&amp;Keyboard shortcuts …</source>
        <translation>键盘快捷键(&amp;K) …</translation>
    </message>
    <message>
        <source>&amp;Plan</source>
        <translation>方案(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Simulate again</source>
        <translation>重新模拟(&amp;S)</translation>
    </message>
    <message>
        <source>Sea&amp;rch strategies</source>
        <translation>搜索策略(&amp;R)</translation>
    </message>
    <message>
        <source>R&amp;un on this machine</source>
        <translation>在本机运行(&amp;U)</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>停止(&amp;T)</translation>
    </message>
    <message>
        <source>Use as &amp;baseline (A)</source>
        <translation>设为基准 (&amp;A)</translation>
    </message>
    <message>
        <source>Clear base&amp;line</source>
        <translation>清除基准(&amp;L)</translation>
    </message>
    <message>
        <source>Detail: whole stages</source>
        <translation>细节：整个阶段</translation>
    </message>
    <message>
        <source>Detail: layers</source>
        <translation>细节：层</translation>
    </message>
    <message>
        <source>Detail: single operations</source>
        <translation>细节：单个算子</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Timeline and memory</source>
        <translation>时间线与显存(&amp;T)</translation>
    </message>
    <message>
        <source>T&amp;opology</source>
        <translation>拓扑(&amp;O)</translation>
    </message>
    <message>
        <source>&amp;Compare</source>
        <translation>对比(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Strategy</source>
        <translation>策略(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Inspector</source>
        <translation>详情(&amp;I)</translation>
    </message>
    <message>
        <source>Sea&amp;rch</source>
        <translation>搜索(&amp;R)</translation>
    </message>
    <message>
        <source>R&amp;un</source>
        <translation>运行(&amp;U)</translation>
    </message>
    <message>
        <source>&amp;Bookmarks</source>
        <translation>书签(&amp;B)</translation>
    </message>
    <message>
        <source>&amp;Log</source>
        <translation>日志(&amp;L)</translation>
    </message>
    <message>
        <source>T&amp;heme</source>
        <translation>主题(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Dark</source>
        <translation>深色(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Light</source>
        <translation>浅色(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;High contrast</source>
        <translation>高对比度(&amp;H)</translation>
    </message>
    <message>
        <source>L&amp;anguage</source>
        <translation>语言 / Language(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;Full screen</source>
        <translation>全屏(&amp;F)</translation>
    </message>
    <message>
        <source>Ne&amp;xt pane</source>
        <translation>下一个窗格(&amp;X)</translation>
    </message>
    <message>
        <source>&amp;Rows of the timeline</source>
        <translation>时间线的行(&amp;R)</translation>
    </message>
    <message>
        <source>By pipeline &amp;stage</source>
        <translation>按流水线阶段(&amp;S)</translation>
    </message>
    <message>
        <source>By &amp;tensor-parallel group</source>
        <translation>按张量并行组(&amp;T)</translation>
    </message>
    <message>
        <source>By &amp;data-parallel replica</source>
        <translation>按数据并行副本(&amp;D)</translation>
    </message>
    <message>
        <source>By &amp;node</source>
        <translation>按节点(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Pin the row</source>
        <translation>固定此行(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Unfold the row</source>
        <translation>展开此行(&amp;U)</translation>
    </message>
    <message>
        <source>&amp;Go</source>
        <translation>转到(&amp;G)</translation>
    </message>
    <message>
        <source>Show &amp;all</source>
        <translation>显示全部(&amp;A)</translation>
    </message>
    <message>
        <source>Zoom to se&amp;lection</source>
        <translation>缩放到所选(&amp;L)</translation>
    </message>
    <message>
        <source>Zoom to the &amp;selected range</source>
        <translation>缩放到所选范围(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Measure selection</source>
        <translation>测量所选(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Next bubble</source>
        <translation>下一个气泡(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Previous bubble</source>
        <translation>上一个气泡(&amp;P)</translation>
    </message>
    <message>
        <source>Next &amp;worst bubble</source>
        <translation>下一个最大的气泡(&amp;W)</translation>
    </message>
    <message>
        <source>Next &amp;operation</source>
        <translation>下一个算子(&amp;O)</translation>
    </message>
    <message>
        <source>P&amp;revious operation</source>
        <translation>上一个算子(&amp;R)</translation>
    </message>
    <message>
        <source>Go to &amp;blocking operation</source>
        <translation>转到阻塞它的操作(&amp;B)</translation>
    </message>
    <message>
        <source>Go bac&amp;k</source>
        <translation>返回(&amp;K)</translation>
    </message>
    <message>
        <source>Book&amp;mark here</source>
        <translation>在此加书签(&amp;M)</translation>
    </message>
    <message>
        <source>bookmark %1</source>
        <translation>书签 %1</translation>
    </message>
    <message>
        <source>Assign bookmark to &amp;key</source>
        <translation>把书签分配给按键(&amp;K)</translation>
    </message>
    <message>
        <source>Go &amp;to a bookmark</source>
        <translation>转到书签(&amp;T)</translation>
    </message>
    <message>
        <source>Set bookmark %1</source>
        <translation>设置书签 %1</translation>
    </message>
    <message>
        <source>Go to bookmark %1</source>
        <translation>转到书签 %1</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Keyboard shortcuts</source>
        <translation>键盘快捷键(&amp;K)</translation>
    </message>
    <message>
        <source>&amp;Tour in three steps</source>
        <translation>三步导览(&amp;T)</translation>
    </message>
    <message>
        <source>Set %1</source>
        <translation>设置：%1</translation>
    </message>
    <message>
        <source>strategy</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>Model %1</source>
        <translation>模型：%1</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>What do you want to do?</source>
        <translation>想做什么？</translation>
    </message>
    <message>
        <source>Find an operation, layer, rank, bubble, link …</source>
        <translation>查找算子、层、rank、气泡、链路 …</translation>
    </message>
    <message>
        <source>Chinese (needs a font, such as the package fonts-noto-cjk)</source>
        <translation>中文（需要字体，例如软件包 fonts-noto-cjk）</translation>
    </message>
</context>
<context>
    <name>foreshard::ProgramLists</name>
    <message>
        <source>foreshard list %1: %2</source>
        <translation>foreshard list %1：%2</translation>
    </message>
</context>
<context>
    <name>foreshard::MemoryView</name>
    <message>
        <source>device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>host, pinned</source>
        <translation>主机（锁页）</translation>
    </message>
    <message>
        <source>host</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>Memory over time appears here</source>
        <translation>这里显示显存随时间的变化</translation>
    </message>
    <message>
        <source>reading ...</source>
        <translation>正在读取 …</translation>
    </message>
    <message>
        <source>nothing lives in this memory</source>
        <translation>这个存储中没有内容</translation>
    </message>
    <message>
        <source>capacity</source>
        <translation>容量</translation>
    </message>
    <message>
        <source>peak %1</source>
        <translation>峰值 %1</translation>
    </message>
    <message>
        <source> in %1</source>
        <translation>，位于 %1</translation>
    </message>
    <message>
        <source>, %1 of it %2</source>
        <translation>，其中 %1 为%2</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Live bytes by category over time; the table of memory holds the peaks of every stage in text</source>
        <translation>按类别的存活字节随时间变化；显存表以文字列出各阶段的峰值</translation>
    </message>
    <message>
        <source>largest at the peak:</source>
        <translation>峰值时最大的：</translation>
    </message>
    <message>
        <source>usable</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>预留</translation>
    </message>
    <message>
        <source>worst</source>
        <translation>最坏</translation>
    </message>
    <message>
        <source>peak incl. framework %1</source>
        <translation>峰值（含框架）%1</translation>
    </message>
    <message>
        <source>peak in use</source>
        <translation>使用峰值</translation>
    </message>
    <message>
        <source>worst order</source>
        <translation>最坏顺序</translation>
    </message>
    <message>
        <source>peaks incl. framework</source>
        <translation>各阶段峰值（含框架）</translation>
    </message>
    <message>
        <source>%1: peak incl. framework %2</source>
        <translation>%1：峰值（含框架）%2</translation>
    </message>
    <message>
        <source>worst case of any order %1</source>
        <translation>任意顺序的最坏情况 %1</translation>
    </message>
    <message>
        <source>reserved arena %1</source>
        <translation>预留的内存池 %1</translation>
    </message>
    <message>
        <source>states of experts (hatched) %1</source>
        <translation>专家的状态（斜线）%1</translation>
    </message>
    <message>
        <source>in use incl. framework %1</source>
        <translation>使用中（含框架）%1</translation>
    </message>
    <message>
        <source>in use %1</source>
        <translation>使用中 %1</translation>
    </message>
    <message>
        <source>capacity: memory of the device
usable: capacity less the reserve that stays free
reserved: the arena that the plan reserves
worst: what the worst order of the same work would need</source>
        <translation>容量：设备的内存
可用：容量减去保留的部分
预留：计划预留的内存池
最坏：同样工作在最坏顺序下的需要</translation>
    </message>
</context>
<context>
    <name>foreshard::OptionField</name>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Auto · %1</source>
        <translation>自动 · %1</translation>
    </message>
</context>
<context>
    <name>foreshard::PaletteBox</name>
    <message>
        <source>No match.</source>
        <translation>没有匹配项。</translation>
    </message>
</context>
<context>
    <name>foreshard::ParetoView</name>
    <message>
        <source>Time against memory of the strategies found</source>
        <translation>所找到策略的时间与显存</translation>
    </message>
    <message>
        <source>The table beside it holds the same strategies.</source>
        <translation>旁边的表格列出同样的策略。</translation>
    </message>
    <message>
        <source>step time [ms]</source>
        <translation>每步时间 [ms]</translation>
    </message>
    <message>
        <source>step time [s]</source>
        <translation>每步时间 [s]</translation>
    </message>
    <message>
        <source>peak memory [GiB]</source>
        <translation>峰值显存 [GiB]</translation>
    </message>
    <message>
        <source>simulated</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>Every strategy that a search finds appears here: time against memory.</source>
        <translation>搜索到的每个策略都显示在这里：时间与显存。</translation>
    </message>
</context>
<context>
    <name>foreshard::RooflinePlot</name>
    <message>
        <source>Roofline</source>
        <translation>屋顶线</translation>
    </message>
    <message>
        <source>%1 of the %2 possible at this intensity</source>
        <translation>达到此强度下可能的 %2 的 %1</translation>
    </message>
    <message>
        <source>memory bound</source>
        <translation>受显存带宽限制</translation>
    </message>
    <message>
        <source>compute bound</source>
        <translation>受计算限制</translation>
    </message>
    <message>
        <source>%1 of the roof, %2 FLOP/B</source>
        <translation>屋顶的 %1，%2 FLOP/B</translation>
    </message>
</context>
<context>
    <name>foreshard::RunPanel</name>
    <message>
        <source>This plan needs %1 ranks; this machine runs at most %2.</source>
        <translation>此方案需要 %1 个 rank；本机最多运行 %2 个。</translation>
    </message>
    <message>
        <source>The ranks of this plan need %1 of memory together; this machine gives at most %2.</source>
        <translation>此方案的所有 rank 共需 %1 内存；本机最多提供 %2。</translation>
    </message>
    <message>
        <source>this machine&apos;s processor</source>
        <translation>本机处理器</translation>
    </message>
    <message>
        <source>CUDA GPUs</source>
        <translation>CUDA GPU</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>emulated: per-op CPU time, scheduled along the plan</source>
        <translation>仿真：逐算子 CPU 时间，按计划排程</translation>
    </message>
    <message>
        <source>wall clock</source>
        <translation>实际时间</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Run this plan</source>
        <translation>运行此方案</translation>
    </message>
    <message>
        <source>Progress of the run</source>
        <translation>运行进度</translation>
    </message>
    <message>
        <source>Load a small plan that runs here</source>
        <translation>载入可在本机运行的小方案</translation>
    </message>
    <message>
        <source>No plan is shown.</source>
        <translation>没有显示方案。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Running …</source>
        <translation>正在运行 …</translation>
    </message>
    <message>
        <source>step %1, loss %2, %3</source>
        <translation>第 %1 步，损失 %2，%3</translation>
    </message>
    <message>
        <source>measured %1 per step, peak %2</source>
        <translation>实测每步 %1，峰值 %2</translation>
    </message>
    <message>
        <source>predicted %1 for %2</source>
        <translation>预测 %1（%2）</translation>
    </message>
    <message>
        <source>The two are not comparable: this machine's processor is not %1. To predict this machine, run &quot;foreshard calibrate --device host&quot; and choose its this-host.json as the cluster.</source>
        <translation>两者不可比较：本机处理器不是 %1。要预测本机，请运行 “foreshard calibrate --device host”，并选择它写出的 this-host.json 作为集群。</translation>
    </message>
    <message>
        <source>The two are not comparable: %1 is not %2. To predict this machine, run "foreshard calibrate --device host" and choose its this-host.json as the cluster.</source>
        <translation>二者不可比较：%1 不是 %2。要预测本机，请运行 "foreshard calibrate --device host"，并选择其 this-host.json 作为集群。</translation>
    </message>
</context>
<context>
    <name>foreshard::Screenshot</name>
    <message>
        <source>no view is called %1</source>
        <translation>没有名为 %1 的视图</translation>
    </message>
    <message>
        <source>%1 cannot be written</source>
        <translation>无法写入 %1</translation>
    </message>
</context>
<context>
    <name>foreshard::SearchPanel</name>
    <message>
        <source>Filter: 1f1b, recompute, …</source>
        <translation>筛选：1f1b、recompute …</translation>
    </message>
    <message>
        <source>Filter the strategies</source>
        <translation>筛选策略</translation>
    </message>
    <message>
        <source>Objective</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>What the search ranks by; pareto: time against memory</source>
        <translation>搜索的排序依据；帕累托：时间与显存</translation>
    </message>
    <message>
        <source>Number of strategies that are simulated</source>
        <translation>模拟的策略数</translation>
    </message>
    <message>
        <source>How many of the best estimates are checked by an exact simulation</source>
        <translation>对估计最好的多少个策略做精确模拟</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Search only around my tp/pp/dp</source>
        <translation>只在我的 tp/pp/dp 附近搜索</translation>
    </message>
    <message>
        <source>Otherwise the search varies: %1</source>
        <translation>否则搜索会改变：%1</translation>
    </message>
    <message>
        <source>Progress of the search</source>
        <translation>搜索进度</translation>
    </message>
    <message>
        <source>Not searched yet.</source>
        <translation>尚未搜索。</translation>
    </message>
    <message>
        <source>Strategies found</source>
        <translation>找到的策略</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Searching …</source>
        <translation>正在搜索 …</translation>
    </message>
    <message>
        <source>Screening …</source>
        <translation>正在筛选 …</translation>
    </message>
    <message numerus="yes">
        <source>%n found, best %1</source>
        <translation>
            <numerusform>找到 %n 个，最好 %1</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 s left</source>
        <translation>剩余 %1 秒</translation>
    </message>
    <message>
        <source>%1 strategies in %2 s, %3 checked exactly, best %4</source>
        <translation>%2 秒内 %1 个策略，精确检查 %3 个，最好 %4</translation>
    </message>
    <message>
        <source>Stopped. Results so far are kept. </source>
        <translation>已停止。已有结果保留。</translation>
    </message>
    <message>
        <source>Simulate the best</source>
        <translation>模拟最好的</translation>
    </message>
</context>
<context>
    <name>foreshard::SearchRows</name>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>no</source>
        <translation>否</translation>
    </message>
    <message>
        <source>estimated time of one step</source>
        <translation>估算的每步时间</translation>
    </message>
    <message>
        <source>simulated time of one step</source>
        <translation>模拟的每步时间</translation>
    </message>
    <message>
        <source>peak memory of the GPU that needs most</source>
        <translation>最满 GPU 的峰值显存</translation>
    </message>
    <message>
        <source>memory that stays free beside the reserve</source>
        <translation>除预留外仍空闲的显存</translation>
    </message>
    <message>
        <source>tensor parallel</source>
        <translation>张量并行</translation>
    </message>
    <message>
        <source>context parallel</source>
        <translation>上下文并行</translation>
    </message>
    <message>
        <source>pipeline ranks</source>
        <translation>流水线并行</translation>
    </message>
    <message>
        <source>virtual stages</source>
        <translation>虚拟阶段</translation>
    </message>
    <message>
        <source>data parallel</source>
        <translation>数据并行</translation>
    </message>
    <message>
        <source>GPUs that share the experts of a layer, and each of them</source>
        <translation>分担一层专家、以及分担每个专家的 GPU</translation>
    </message>
    <message>
        <source>micro-batch</source>
        <translation>微批</translation>
    </message>
    <message>
        <source>schedule</source>
        <translation>调度</translation>
    </message>
    <message>
        <source>ZeRO stage; +: parameters overlapped</source>
        <translation>ZeRO 级别；+：参数通信重叠</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>sequence parallel</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>what holds it up</source>
        <translation>瓶颈所在</translation>
    </message>
    <message>
        <source>estimate</source>
        <translation>估算</translation>
    </message>
    <message>
        <source>simulated</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>free</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>bound by</source>
        <translation>瓶颈</translation>
    </message>
</context>
<context>
    <name>foreshard::StrategyPanel</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>集群</translation>
    </message>
    <message>
        <source>Auto · from the cluster file</source>
        <translation>自动 · 按集群文件</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>节点数</translation>
    </message>
    <message>
        <source>Override any field, e.g. cluster.fabric.oversubscription=2; model.n_layer=48</source>
        <translation>覆盖任意字段，例如 cluster.fabric.oversubscription=2; model.n_layer=48</translation>
    </message>
    <message>
        <source>What if</source>
        <translation>假如</translation>
    </message>
    <message>
        <source>Choose a file</source>
        <translation>选择文件</translation>
    </message>
    <message>
        <source>Choose a file: %1</source>
        <translation>选择文件：%1</translation>
    </message>
    <message>
        <source>Models (*.json)</source>
        <translation>模型 (*.json)</translation>
    </message>
    <message>
        <source>Clusters (*.json)</source>
        <translation>集群 (*.json)</translation>
    </message>
    <message>
        <source>Nodes: &quot;%1&quot; is not a whole number from 1.</source>
        <translation>节点数：“%1”不是从 1 起的整数。</translation>
    </message>
    <message>
        <source>&quot;%1&quot; is not of the form PATH=VALUE.</source>
        <translation>“%1”不是 PATH=VALUE 的形式。</translation>
    </message>
    <message>
        <source>To make it fit:</source>
        <translation>为了放得下：</translation>
    </message>
    <message>
        <source>Set %1 to %2</source>
        <translation>将 %1 设为 %2</translation>
    </message>
    <message>
        <source>Turn on %1</source>
        <translation>打开 %1</translation>
    </message>
    <message>
        <source> and </source>
        <translation> 并且 </translation>
    </message>
    <message>
        <source>What would help:</source>
        <translation>可行的办法：</translation>
    </message>
    <message>
        <source>Use %1</source>
        <translation>使用 %1</translation>
    </message>
    <message>
        <source>What the program says of this strategy</source>
        <translation>程序对此策略的说明</translation>
    </message>
</context>
<context>
    <name>foreshard::SuggestionList</name>
    <message>
        <source>%1 per step, %2 shorter (%3 %)</source>
        <translation>每步 %1，缩短 %2（%3 %）</translation>
    </message>
    <message>
        <source>Makes this change</source>
        <translation>作此改动</translation>
    </message>
    <message>
        <source>Would help (simulating %1 of %2 …)</source>
        <translation>可行的改动（正在模拟第 %1 个，共 %2 个 …）</translation>
    </message>
    <message>
        <source>No single change is known to help here.</source>
        <translation>没有已知的单项改动能改善这里。</translation>
    </message>
    <message numerus="yes">
        <source>%n change(s) simulated: none makes a step shorter.</source>
        <translation>
            <numerusform>模拟了 %n 项改动：没有一项能缩短每步时间。</numerusform>
        </translation>
    </message>
    <message>
        <source>Would help (each simulated):</source>
        <translation>可行的改动（均已模拟）：</translation>
    </message>
</context>
<context>
    <name>foreshard::TimelineView</name>
    <message>
        <source>Click: grey or coloured. Ctrl+click: this one only.</source>
        <translation>单击：灰色或彩色。Ctrl+单击：只看这一项。</translation>
    </message>
    <message>
        <source>whole run</source>
        <translation>整个运行</translation>
    </message>
    <message>
        <source>idle %1: %2</source>
        <translation>空闲 %1：%2</translation>
    </message>
    <message>
        <source>%1: %2 and %3 more, %4</source>
        <translation>%1：%2 及另外 %3 个，%4</translation>
    </message>
    <message>
        <source>%1: %2, %3</source>
        <translation>%1：%2，%3</translation>
    </message>
    <message>
        <source>Nothing to show yet: simulate a strategy or open a result</source>
        <translation>还没有内容：请模拟一个策略或打开一个结果</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>busy</source>
        <translation>忙碌</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>forward</source>
        <translation>前向</translation>
    </message>
    <message>
        <source>backward</source>
        <translation>反向</translation>
    </message>
    <message>
        <source>weight gradient</source>
        <translation>权重梯度</translation>
    </message>
    <message>
        <source>forward and backward</source>
        <translation>前向与反向</translation>
    </message>
    <message>
        <source>update</source>
        <translation>更新</translation>
    </message>
    <message>
        <source>dispatch</source>
        <translation>分发（词元到专家）</translation>
    </message>
    <message>
        <source>combine</source>
        <translation>合并（专家结果返回）</translation>
    </message>
    <message>
        <source>blocking collective</source>
        <translation>计算流上的集合通信</translation>
    </message>
    <message>
        <source>transfer</source>
        <translation>传输</translation>
    </message>
    <message>
        <source>collective</source>
        <translation>集合通信</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>时间线</translation>
    </message>
    <message>
        <source>Work and idle time of every group of ranks; the table of operations holds the same in text</source>
        <translation>每组 rank 的工作与空闲时间；算子表以文字列出同样的内容</translation>
    </message>
    <message>
        <source>critical path: none</source>
        <translation>关键路径：无</translation>
    </message>
    <message>
        <source>critical path: %1</source>
        <translation>关键路径：%1</translation>
    </message>
    <message>
        <source>B</source>
        <translation>B</translation>
    </message>
    <message>
        <source>mean</source>
        <translation>平均</translation>
    </message>
    <message>
        <source>worst rank</source>
        <translation>最差 rank</translation>
    </message>
    <message>
        <source>%1, %2</source>
        <translation>%1，%2</translation>
    </message>
    <message>
        <source>%1 selected, from %2 to %3</source>
        <translation>选中 %1，从 %2 到 %3</translation>
    </message>
    <message>
        <source>The whole legend</source>
        <translation>全部图例</translation>
    </message>
</context>
<context>
    <name>foreshard::TopologyView</name>
    <message>
        <source>Topology</source>
        <translation>拓扑</translation>
    </message>
    <message>
        <source>Parts and links of a node and its fabric; the table of links holds the same in text</source>
        <translation>节点及其网络的部件与链路；链路表以文字列出同样的内容</translation>
    </message>
    <message>
        <source>node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>%1 used</source>
        <translation>使用 %1</translation>
    </message>
    <message>
        <source>not used</source>
        <translation>未使用</translation>
    </message>
    <message>
        <source>The network of the cluster appears here</source>
        <translation>这里显示集群的网络</translation>
    </message>
    <message>
        <source>node %1 of %2, %3</source>
        <translation>第 %1 个节点（共 %2 个），%3</translation>
    </message>
    <message>
        <source>all nodes, each by its hottest link; click one to see it above</source>
        <translation>所有节点，按最忙的链路着色；单击可在上方查看</translation>
    </message>
    <message>
        <source>hottest links in %1</source>
        <translation>%1 内最忙的链路</translation>
    </message>
    <message>
        <source>used: 0 %</source>
        <translation>使用率：0 %</translation>
    </message>
    <message>
        <source>shared by %1 flows on average</source>
        <translation>平均由 %1 个流共享</translation>
    </message>
    <message>
        <source>%1 links</source>
        <translation>%1 条链路</translation>
    </message>
</context>
<context>
    <name>foreshard::Tour</name>
    <message>
        <source>Skip</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一步</translation>
    </message>
</context>
<context>
    <name>Facts</name>
    <message>
        <source>on</source>
        <translation>位于</translation>
    </message>
    <message>
        <source>What it waited for, latest first</source>
        <translation>它等待过什么（最近的在前）</translation>
    </message>
    <message>
        <source> on </source>
        <translation> 位于 </translation>
    </message>
    <message>
        <source>Idle %1: %2</source>
        <translation>空闲 %1：%2</translation>
    </message>
    <message>
        <source>Where</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>stage</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>share of the iteration</source>
        <translation>占整个迭代</translation>
    </message>
    <message>
        <source>the iteration ended</source>
        <translation>迭代结束</translation>
    </message>
    <message>
        <source>Measured, its whole action</source>
        <translation>实测（整个动作）</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>error</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>1 rank on </source>
        <translation>1 个 rank，运行在 </translation>
    </message>
    <message>
        <source>%1 ranks that run the same program on </source>
        <translation>%1 个运行同一程序的 rank，运行在 </translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>busy</source>
        <translation>忙碌</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>1 link</source>
        <translation>1 条链路</translation>
    </message>
    <message>
        <source>Over the whole run</source>
        <translation>整个运行期间</translation>
    </message>
    <message>
        <source>bandwidth</source>
        <translation>带宽</translation>
    </message>
    <message>
        <source>carried</source>
        <translation>已传输</translation>
    </message>
    <message>
        <source>used</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>rate while busy</source>
        <translation>忙碌时速率</translation>
    </message>
    <message>
        <source>The whole iteration</source>
        <translation>整个迭代</translation>
    </message>
    <message>
        <source>Click a bubble, an operation, a stage or a link to look into it.</source>
        <translation>点击气泡、操作、阶段或链路查看详情。</translation>
    </message>
    <message>
        <source>iteration</source>
        <translation>迭代</translation>
    </message>
    <message>
        <source>90 % interval</source>
        <translation>90% 区间</translation>
    </message>
    <message>
        <source>one by itself, filled and drained</source>
        <translation>单独一次（含填充与排空）</translation>
    </message>
    <message>
        <source>rests on</source>
        <translation>依据</translation>
    </message>
    <message>
        <source>model FLOPs utilisation</source>
        <translation>模型 FLOPs 利用率</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>Memory of a device</source>
        <translation>单个设备的显存</translation>
    </message>
    <message>
        <source>capacity</source>
        <translation>容量</translation>
    </message>
    <message>
        <source>to spare</source>
        <translation>余量</translation>
    </message>
    <message>
        <source>Remarks</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Work</source>
        <translation>工作</translation>
    </message>
    <message>
        <source>operation</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>operations in this span</source>
        <translation>此段中的操作数</translation>
    </message>
    <message>
        <source>shape</source>
        <translation>形状</translation>
    </message>
    <message>
        <source>settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>FLOPs</source>
        <translation>FLOPs</translation>
    </message>
    <message>
        <source>memory traffic</source>
        <translation>访存量</translation>
    </message>
    <message>
        <source>rate</source>
        <translation>速率</translation>
    </message>
    <message>
        <source>memory rate</source>
        <translation>访存速率</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>字节</translation>
    </message>
    <message>
        <source>algorithm</source>
        <translation>算法</translation>
    </message>
    <message>
        <source>group</source>
        <translation>组</translation>
    </message>
    <message>
        <source>ranks in it</source>
        <translation>组内 rank 数</translation>
    </message>
    <message>
        <source>stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>alone it would take</source>
        <translation>独占时耗时</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source> on the host</source>
        <translation>（主机上）</translation>
    </message>
    <message>
        <source>... %1 more</source>
        <translation>…… 另有 %1 项</translation>
    </message>
    <message>
        <source>Made of</source>
        <translation>组成</translation>
    </message>
    <message>
        <source>%1, %2 times</source>
        <translation>%1，%2 次</translation>
    </message>
    <message>
        <source>start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>total of this cause on this stage</source>
        <translation>该阶段此原因合计</translation>
    </message>
    <message>
        <source>Ended when</source>
        <translation>结束于</translation>
    </message>
    <message>
        <source>%1 could start</source>
        <translation>%1 可以开始</translation>
    </message>
    <message>
        <source>duration</source>
        <translation>时长</translation>
    </message>
    <message>
        <source>operations</source>
        <translation>操作数</translation>
    </message>
    <message>
        <source>Begins with</source>
        <translation>首个操作</translation>
    </message>
    <message>
        <source>peak incl. framework</source>
        <translation>峰值（含框架）</translation>
    </message>
    <message>
        <source>worst case of any order</source>
        <translation>任意顺序的最坏情况</translation>
    </message>
    <message>
        <source>reserved arena</source>
        <translation>预留的内存池</translation>
    </message>
    <message>
        <source>%1 identical links</source>
        <translation>%1 条相同的链路</translation>
    </message>
    <message>
        <source>Critical path of the run</source>
        <translation>本次运行的关键路径</translation>
    </message>
    <message>
        <source>communication not hidden</source>
        <translation>未隐藏的通信</translation>
    </message>
    <message>
        <source>in line with the compute</source>
        <translation>与计算串行</translation>
    </message>
    <message>
        <source>waited for (idle)</source>
        <translation>等待（空闲）</translation>
    </message>
    <message>
        <source>over by</source>
        <translation>超出</translation>
    </message>
    <message>
        <source>input gradient</source>
        <translation>输入梯度</translation>
    </message>
    <message>
        <source>throughput</source>
        <translation>吞吐率</translation>
    </message>
    <message>
        <source>ready</source>
        <translation>就绪</translation>
    </message>
    <message>
        <source>%1 earlier</source>
        <translation>提前 %1</translation>
    </message>
    <message>
        <source>forward</source>
        <translation>前向</translation>
    </message>
    <message>
        <source>backward</source>
        <translation>反向</translation>
    </message>
    <message>
        <source>weight gradient</source>
        <translation>权重梯度</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>update</source>
        <translation>更新</translation>
    </message>
</context>
<context>
    <name>Delta</name>
    <message>
        <source>GPUs</source>
        <translation>GPU 数</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>model FLOPs utilisation</source>
        <translation>模型 FLOPs 利用率</translation>
    </message>
    <message>
        <source>samples per second and GPU</source>
        <translation>每 GPU 每秒样本</translation>
    </message>
    <message>
        <source>%1%2 points</source>
        <translation>%1%2 个百分点</translation>
    </message>
    <message>
        <source>iteration time</source>
        <translation>迭代时间</translation>
    </message>
    <message>
        <source>tokens per second and GPU</source>
        <translation>每 GPU 每秒词元</translation>
    </message>
    <message>
        <source>hidden communication</source>
        <translation>隐藏的通信</translation>
    </message>
    <message>
        <source>cost per million tokens</source>
        <translation>每百万词元成本</translation>
    </message>
    <message>
        <source>micro-batches</source>
        <translation>微批数</translation>
    </message>
    <message>
        <source>forward of stage %1</source>
        <translation>阶段 %1 的前向</translation>
    </message>
    <message>
        <source>backward of stage %1</source>
        <translation>阶段 %1 的反向</translation>
    </message>
    <message>
        <source>communication not hidden</source>
        <translation>未隐藏的通信</translation>
    </message>
    <message>
        <source>in line with the compute</source>
        <translation>与计算串行</translation>
    </message>
    <message>
        <source>peak incl. framework</source>
        <translation>峰值（含框架）</translation>
    </message>
    <message>
        <source>reserved arena</source>
        <translation>预留的内存池</translation>
    </message>
</context>
<context>
    <name>foreshard::TablePage</name>
    <message>
        <source>What the table lists</source>
        <translation>表格列出的内容</translation>
    </message>
    <message>
        <source>operations (timeline)</source>
        <translation>操作（时间线）</translation>
    </message>
    <message>
        <source>idle time (timeline)</source>
        <translation>空闲（时间线）</translation>
    </message>
    <message>
        <source>stages (memory)</source>
        <translation>阶段（显存）</translation>
    </message>
    <message>
        <source>links (topology)</source>
        <translation>链路（拓扑）</translation>
    </message>
    <message>
        <source>%1 of %2 operations: those in the visible time, at most %3</source>
        <translation>%2 个操作中的 %1 个：可见时间内的，至多 %3 个</translation>
    </message>
    <message>
        <source>%1 of %2 rows</source>
        <translation>%2 行中的 %1 行</translation>
    </message>
    <message>
        <source>1 row</source>
        <translation>1 行</translation>
    </message>
    <message>
        <source>%1 rows</source>
        <translation>%1 行</translation>
    </message>
</context>
<context>
    <name>Tables</name>
    <message>
        <source>begin</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>cause</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>ends with</source>
        <translation>结束于</translation>
    </message>
    <message>
        <source>the iteration</source>
        <translation>迭代结束</translation>
    </message>
    <message>
        <source>link</source>
        <translation>链路</translation>
    </message>
    <message>
        <source>links</source>
        <translation>链路数</translation>
    </message>
    <message>
        <source>operation</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>stage</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>busy</source>
        <translation>忙碌</translation>
    </message>
    <message>
        <source>bandwidth</source>
        <translation>带宽</translation>
    </message>
    <message>
        <source>carried</source>
        <translation>传输量</translation>
    </message>
    <message>
        <source>used</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>duration</source>
        <translation>时长</translation>
    </message>
    <message>
        <source>peak incl. framework</source>
        <translation>峰值（含框架）</translation>
    </message>
    <message>
        <source>worst case of any order</source>
        <translation>任意顺序的最坏情况</translation>
    </message>
    <message>
        <source>reserved arena</source>
        <translation>预留的内存池</translation>
    </message>
</context>
<context>
    <name>Background</name>
    <message>
        <source>Internal error: %1. Please report it.</source>
        <translation>内部错误：%1。请报告。</translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>%1: %2: found %3, expected %4</source>
        <translation>%1：%2：找到 %3，应为 %4</translation>
    </message>
    <message>
        <source>%1: found %2, expected %3</source>
        <translation>%1：找到 %2，应为 %3</translation>
    </message>
    <message>
        <source>found %1 (part %2) in %3, expected %4</source>
        <translation>找到 %1（%3 的第 %2 部分），应为 %4</translation>
    </message>
    <message>
        <source>found %1 in %2, expected %3</source>
        <translation>在 %2 中找到 %1，应为 %3</translation>
    </message>
    <message>
        <source>found %1, expected %2</source>
        <translation>找到 %1，应为 %2</translation>
    </message>
    <message>
        <source>%1 (nearest: %2)</source>
        <translation>%1（最接近的是 %2）</translation>
    </message>
    <message>
        <source>an integer from %1 to %2</source>
        <translation>%1 到 %2 的整数</translation>
    </message>
    <message>
        <source>a whole number from %1</source>
        <translation>从 %1 起的整数</translation>
    </message>
    <message>
        <source>a number of at least %1 and below %2, or a percentage such as %3</source>
        <translation>不小于 %1 且小于 %2 的数，或百分数，例如 %3</translation>
    </message>
    <message>
        <source>a number of at least %1 and below %2</source>
        <translation>不小于 %1 且小于 %2 的数</translation>
    </message>
    <message>
        <source>a size of at least %1 with a unit (%2)</source>
        <translation>不小于 %1 且带单位（%2）的大小</translation>
    </message>
    <message>
        <source>one of %1</source>
        <translation>以下之一：%1</translation>
    </message>
    <message>
        <source>none or some of %1</source>
        <translation>none，或以下若干项：%1</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>true 或 false</translation>
    </message>
    <message>
        <source>tp, cp, dp and role (and dp_outer), each once, in any order, such as %1</source>
        <translation>tp、cp、dp 和 role（以及 dp_outer），各一次，顺序任意，例如 %1</translation>
    </message>
    <message>
        <source>layers per stage such as %1 (%2: fourteen stages of three layers)</source>
        <translation>每个阶段的层数，例如 %1（%2：十四个阶段，每个三层）</translation>
    </message>
    <message>
        <source>a layer in every stage but the first and the last</source>
        <translation>除首尾之外，每个阶段至少有一层</translation>
    </message>
    <message>
        <source>LAYERS:DPxTP of each stage such as %1 (ten layers on two replicas of one GPU, then three stages of four layers on one replica of two)</source>
        <translation>每个阶段的 层数:DPxTP，例如 %1（十层，两个单 GPU 副本；然后三个阶段，各四层，一个双 GPU 副本）</translation>
    </message>
    <message>
        <source>"full:N" with N layers of every stage, at least %1, or of each stage such as %2</source>
        <translation>"full:N"（每个阶段 N 层，至少 %1），或逐阶段给出，例如 %2</translation>
    </message>
    <message>
        <source>%1, each:.., auto, best, rotor, revolve:N, graph or some of %2</source>
        <translation>%1、each:..、auto、best、rotor、revolve:N、graph，或以下若干项：%2</translation>
    </message>
    <message>
        <source>tp %1 x cp %2 x pp %3 x dp %4 = %5 rank(s), but %6 has %7 GPU(s)</source>
        <translation>tp %1 × cp %2 × pp %3 × dp %4 = %5 个 rank，但 %6 有 %7 个 GPU</translation>
    </message>
    <message>
        <source>tp %1 x cp %2 x pp %3 = %4 does not divide the %5 GPU(s) of %6</source>
        <translation>tp %1 × cp %2 × pp %3 = %4 不能整除 %6 的 %5 个 GPU</translation>
    </message>
    <message>
        <source>auto, or four times F,I,W,C from 0 to 1e9, such as 2,2,1,0.1</source>
        <translation>auto，或 0 到 1e9 的四个用时 F,I,W,C，例如 2,2,1,0.1</translation>
    </message>
    <message>
        <source>more is alive at one time than a device has</source>
        <translation>同一时刻存活的数据超过设备的内存</translation>
    </message>
    <message>
        <source>a framework&apos;s memory is not known for schedules that hold every stage twice</source>
        <translation>对于每个阶段存放两份的调度，框架的内存未知</translation>
    </message>
    <message>
        <source>&quot;%1&quot; would work on more than 2^50 elements or bytes at once, the most that plans have</source>
        <translation>“%1”一次要处理超过 2^50 个元素或字节，这是计划的上限</translation>
    </message>
    <message>
        <source>ZeRO group of %1 rank(s) does not divide dp = %2</source>
        <translation>%1 个 rank 的 ZeRO 组不能整除 dp = %2</translation>
    </message>
    <message>
        <source>global batch %1 is not a multiple of micro-batch %2 x dp %3 = %4</source>
        <translation>全局批 %1 不是微批 %2 × dp %3 = %4 的倍数</translation>
    </message>
    <message>
        <source>%1 micro-batch(es) per step are more than %2</source>
        <translation>每步 %1 个微批，超过了 %2</translation>
    </message>
    <message>
        <source>virtual stages need a pipeline of at least 2 ranks: found %1 virtual stage(s) with pp 1</source>
        <translation>虚拟阶段需要至少 2 个 rank 的流水线：pp 为 1，却有 %1 个虚拟阶段</translation>
    </message>
    <message>
        <source>schedule %1 has one stage per rank, the strategy asks for %2</source>
        <translation>调度 %1 每个 rank 只有一个阶段，策略却要求 %2 个</translation>
    </message>
    <message>
        <source>schedule %1 needs unsharded gradients, which ZeRO %2 shards</source>
        <translation>调度 %1 需要未分片的梯度，而 ZeRO %2 会将其分片</translation>
    </message>
    <message>
        <source>delay_wgrad is of schedules of cells; %1 is none</source>
        <translation>delay_wgrad 只用于由前向反向合并单元组成的调度，%1 不是</translation>
    </message>
    <message>
        <source>schedule best finds an order of one stage per rank, the strategy asks for %1</source>
        <translation>best 调度为每个 rank 一个阶段的流水线寻找执行顺序，策略却要求 %1 个</translation>
    </message>
    <message>
        <source>schedule best finds an order for times that it knows, recompute %1 plans its runs for an order</source>
        <translation>best 调度按已知的用时寻找执行顺序，而重计算 %1 要按执行顺序安排其运行</translation>
    </message>
    <message>
        <source>%1 has no %2 arithmetic, only %3</source>
        <translation>%1 没有 %2 运算，只有 %3</translation>
    </message>
    <message>
        <source>%1 is a layer list: %2 is for the linear layers of transformers</source>
        <translation>%1 是层列表：%2 只用于 transformer 的线性层</translation>
    </message>
    <message>
        <source>no flash attention kernel for %1 on %2</source>
        <translation>%2 上没有用于 %1 的 flash attention 内核</translation>
    </message>
    <message>
        <source>%1 is a layer list: it can be split by data, tensor and pipeline parallelism, not by cp %2</source>
        <translation>%1 是层列表：可以按数据并行、张量并行和流水线并行切分，不能按 cp %2 切分</translation>
    </message>
    <message>
        <source>%1 is a layer list: --parts cuts the attention and the MLP of transformer layers</source>
        <translation>%1 是层列表：--parts 切分的是 Transformer 层的注意力与 MLP</translation>
    </message>
    <message>
        <source>placement has to name each of tp, cp, dp and role once, fastest first</source>
        <translation>placement 必须把 tp、cp、dp 和 role 各写一次，变化最快的在前</translation>
    </message>
    <message>
        <source>%1 degree %2 makes groups of %3 ranks, which lie across those of the dense grid (%4)</source>
        <translation>%1 并行度 %2 形成每组 %3 个 rank 的组，与稠密网格的组（%4）交错</translation>
    </message>
    <message>
        <source>framework %1 recomputes its layers alike, not %2</source>
        <translation>框架 %1 对所有层以同样方式重算，不能用 %2</translation>
    </message>
    <message>
        <source>stages that are said one by one have degrees of their own: found %1 beside them</source>
        <translation>逐个给出的阶段有各自的并行度：旁边却有 %1</translation>
    </message>
    <message>
        <source>stages that are said one by one cannot have %1</source>
        <translation>逐个给出的阶段不能有%1</translation>
    </message>
    <message>
        <source>context parallelism</source>
        <translation>上下文并行</translation>
    </message>
    <message>
        <source>virtual stages</source>
        <translation>虚拟阶段</translation>
    </message>
    <message>
        <source>sequence parallelism</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>stages %1 are %2 rank(s), but %3 has %4 GPU(s)</source>
        <translation>阶段 %1 共 %2 个 rank，但 %3 有 %4 个 GPU</translation>
    </message>
    <message>
        <source>tensor-parallel degree %1 of one stage does not divide %2 of another</source>
        <translation>一个阶段的张量并行度 %1 不能整除另一个阶段的 %2</translation>
    </message>
    <message>
        <source>%1 is a layer list: its stages cannot have tp %2</source>
        <translation>%1 是层列表：其阶段不能有 tp %2</translation>
    </message>
    <message>
        <source>the first stage has tp %1, the last one tp %2: the embedding that they share is cut in as many parts on both</source>
        <translation>第一个阶段的 tp 为 %1，最后一个为 %2：二者共享的嵌入在两边必须切成同样多份</translation>
    </message>
    <message>
        <source>%1 micro-batch(es) cannot be dealt out to %2 replica(s) of a stage evenly</source>
        <translation>%1 个微批不能均匀分给一个阶段的 %2 个副本</translation>
    </message>
    <message>
        <source>layer split %1 beside stages of %2 layer(s)</source>
        <translation>layer split %1 与各阶段的 %2 层同时给出</translation>
    </message>
    <message>
        <source>schedule %1 needs at least 2 virtual stages per rank, found %2</source>
        <translation>调度 %1 每个 rank 至少需要 2 个虚拟阶段，现为 %2</translation>
    </message>
    <message>
        <source>schedule %1 needs exactly 2 virtual stages per rank, found %2</source>
        <translation>调度 %1 每个 rank 恰好需要 2 个虚拟阶段，现为 %2</translation>
    </message>
    <message>
        <source>schedule %1 needs groups of at least %2 micro-batch(es) (the pipeline ranks), found %3</source>
        <translation>调度 %1 的每组至少需要 %2 个微批（流水线的 rank 数），现为 %3</translation>
    </message>
    <message>
        <source>schedule %1 with groups of %2 micro-batch(es) needs at least %3 micro-batch(es), found %4</source>
        <translation>调度 %1 每组 %2 个微批，至少需要 %3 个微批，现为 %4</translation>
    </message>
    <message>
        <source>schedule %1 cannot end with a group of %2 micro-batch(es) on %3 pipeline rank(s) (%4 micro-batch(es) in groups of %5)</source>
        <translation>调度 %1 在 %3 个流水线 rank 上不能以 %2 个微批的组结束（%4 个微批，每组 %5 个）</translation>
    </message>
    <message>
        <source>schedule %1 has every stage on two ranks, ZeRO %2 cuts the gradients of one</source>
        <translation>调度 %1 让每个阶段位于两个流水线级上，ZeRO %2 切分的是一处的梯度</translation>
    </message>
    <message>
        <source>schedule %1 has every stage on two ranks, the norm of all gradients would count each of them twice</source>
        <translation>调度 %1 让每个阶段位于两个流水线级上，全部梯度的范数会把每个梯度算两次</translation>
    </message>
    <message>
        <source>schedule %1 has every stage on two ranks, recompute %2 plans the runs of one</source>
        <translation>调度 %1 让每个阶段位于两个流水线级上，重计算 %2 只安排一处的运行</translation>
    </message>
    <message>
        <source>schedule %1 updates each stage by itself, ZeRO %2 gathers parameters once for a step</source>
        <translation>调度 %1 单独更新每个阶段，ZeRO %2 每步只收集一次参数</translation>
    </message>
    <message>
        <source>schedule %1 updates each stage by itself, the norm of all gradients is that of all stages</source>
        <translation>调度 %1 单独更新每个阶段，全部梯度的范数属于所有阶段</translation>
    </message>
    <message>
        <source>schedule %1 updates each stage by itself, a tied embedding takes the gradients of the first and the last stage: the last would wait in each update until the gradient has passed all stages, and the pipeline would run empty</source>
        <translation>调度 %1 单独更新每个阶段，而共享的词嵌入需要首尾两个阶段的梯度：末阶段每次更新都要等到梯度经过所有阶段，流水线会因此排空</translation>
    </message>
    <message>
        <source>schedule %1 updates each stage by itself, offloaded parameters and gradients come and go once for a step</source>
        <translation>调度 %1 单独更新每个阶段，卸载的参数与梯度每步只来回一次</translation>
    </message>
    <message>
        <source>schedule %1 updates each stage by itself, recompute %2 plans the runs of a step</source>
        <translation>调度 %1 单独更新每个阶段，重计算 %2 安排的是一步的运行</translation>
    </message>
    <message>
        <source>pipeline rank %1 may keep no micro-batch in flight</source>
        <translation>流水线级 %1 不能保留任何微批</translation>
    </message>
    <message>
        <source>schedule file has no lists</source>
        <translation>file 调度没有列表</translation>
    </message>
    <message>
        <source>the schedules of framework %1 are its own, not those of a file</source>
        <translation>框架 %1 的调度是它自己的，不来自文件</translation>
    </message>
    <message>
        <source>the lists of schedule file do not fit: %1</source>
        <translation>file 调度的列表不合适：%1</translation>
    </message>
    <message>
        <source>the lists of schedule file deadlock: %1</source>
        <translation>file 调度的列表死锁：%1</translation>
    </message>
    <message>
        <source>schedule file is what a file lists, not a rule</source>
        <translation>file 调度是文件中的列表，不是规则</translation>
    </message>
    <message>
        <source>schedule looped-bfs needs a micro-batch for each of the %1 pipeline ranks, found %2</source>
        <translation>调度 looped-bfs 需要 %1 个流水线级各有一个微批，现为 %2</translation>
    </message>
    <message>
        <source>schedule chimera needs an even number of pipeline ranks and a multiple of it in micro-batches, found %1 and %2</source>
        <translation>调度 chimera 需要偶数个流水线级，且微批数是其倍数，现为 %1 和 %2</translation>
    </message>
    <message>
        <source>schedule %1 needs twice as many micro-batches as pipeline ranks, %2, found %3</source>
        <translation>调度 %1 需要的微批数是流水线级数的两倍，即 %2，现为 %3</translation>
    </message>
    <message>
        <source>schedule dualpipe needs even numbers of pipeline ranks and of micro-batches, found %1 and %2</source>
        <translation>调度 dualpipe 需要偶数个流水线级和偶数个微批，现为 %1 和 %2</translation>
    </message>
    <message>
        <source>schedule pipedream-2bw needs groups of at least %1 micro-batches that divide the micro-batches of a run, found groups of %2 of %3</source>
        <translation>调度 pipedream-2bw 的每组至少 %1 个微批，且要整除一次运行的微批数，现为每组 %2 个，共 %3 个</translation>
    </message>
    <message>
        <source>schedule %1 has no groups of micro-batches, found groups of %2</source>
        <translation>调度 %1 没有微批分组，现为每组 %2 个</translation>
    </message>
    <message>
        <source>schedule %1 deadlocks</source>
        <translation>调度 %1 会死锁</translation>
    </message>
    <message>
        <source>a pipeline needs at least one %1, found %2</source>
        <translation>流水线至少需要一个 %1，现为 %2</translation>
    </message>
    <message>
        <source>%1 layer(s) do not divide evenly over %2 pipeline stage(s) (%3 / %4 = %5, remainder %6)</source>
        <translation>%1 层不能均匀分到 %2 个流水线阶段（%3 / %4 = %5，余 %6）</translation>
    </message>
    <message>
        <source>layer split %1 names %2 stage(s), the strategy has %3</source>
        <translation>layer split %1 给出 %2 个阶段，策略有 %3 个</translation>
    </message>
    <message>
        <source>layer split %1 adds up to %2 layer(s), the model has %3</source>
        <translation>layer split %1 合计 %2 层，模型有 %3 层</translation>
    </message>
    <message>
        <source>stage %1 would hold no layer</source>
        <translation>阶段 %1 将没有任何层</translation>
    </message>
    <message>
        <source>%1 asks for %2 layer(s) of stage %3, which has %4</source>
        <translation>%1 要求阶段 %3 的 %2 层，而它有 %4 层</translation>
    </message>
    <message>
        <source>%1 names layer %2, the model has layers %3 to %4</source>
        <translation>%1 给出第 %2 层，模型只有第 %3 到 %4 层</translation>
    </message>
    <message>
        <source>%1 names %2 layer(s), the model has %3</source>
        <translation>%1 给出 %2 层，模型有 %3 层</translation>
    </message>
    <message>
        <source>%1 names %2 stage(s), the strategy has %3 on %4 rank(s)</source>
        <translation>%1 给出 %2 个阶段，策略在 %4 个 rank 上有 %3 个</translation>
    </message>
    <message>
        <source>%1 names %2 stage(s), the strategy has %3</source>
        <translation>%1 给出 %2 个阶段，策略有 %3 个</translation>
    </message>
    <message>
        <source>recompute %1 is too little: the activations of pipeline rank %2 need at least %3</source>
        <translation>重算 %1 太少：流水线 rank %2 的激活至少需要 %3</translation>
    </message>
    <message>
        <source>recompute %1 needs whole backwards, schedule %2 splits them</source>
        <translation>重算 %1 需要完整的反向，调度 %2 把反向拆开</translation>
    </message>
    <message>
        <source>pipeline stage %1 would stand on %2 and on %3: the ranks of a stage need equal GPUs</source>
        <translation>流水线阶段 %1 会同时位于 %2 和 %3 上：同一阶段的 rank 需要相同的 GPU</translation>
    </message>
    <message>
        <source>%1 needs %2 (%3) and %4 for the framework; %5 has %6, of which %7 stay free: %8 too much</source>
        <translation>%1 需要 %2（%3），框架另需 %4；%5 有 %6，其中 %7 须留空：超出 %8</translation>
    </message>
    <message>
        <source>%1 takes %2 of %3 per GPU by our prediction, %4 too much, although allocated memory fits: blocks of other sizes lie free, and PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would help</source>
        <translation>按预测，%1 在每个 GPU 上占用 %3 中的 %2，超出 %4；实际分配的显存放得下，只是其他大小的块空闲着：设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 会有帮助</translation>
    </message>
    <message>
        <source>%1 takes %2 of %3 per GPU by our prediction, %4 too much</source>
        <translation>按预测，%1 在每个 GPU 上占用 %3 中的 %2，超出 %4</translation>
    </message>
    <message>
        <source>%1 takes %2 of %3 per GPU by our prediction; measured runs took %4 to %5 of what was predicted, so that it fits with a probability of %6</source>
        <translation>按预测，%1 在每个 GPU 上占用 %3 中的 %2；实测运行占用预测值的 %4 到 %5，因此放得下的概率为 %6</translation>
    </message>
    <message>
        <source>%1 takes %2 of %3 per GPU by our prediction</source>
        <translation>按预测，%1 在每个 GPU 上占用 %3 中的 %2</translation>
    </message>
    <message>
        <source>%1 needs %2 for the model and %3 for the framework; the limit is %4: %5 too much</source>
        <translation>%1 的模型需要 %2，框架需要 %3；上限为 %4：超出 %5</translation>
    </message>
    <message>
        <source>the ranks of node %1 need %2 of its NVMe drives; it has %3</source>
        <translation>节点 %1 上的各 rank 需要 %2 NVMe 空间，而该节点只有 %3</translation>
    </message>
    <message>
        <source>the nodes of %1 (%2) have no NVMe drives</source>
        <translation>%1 的节点（%2）没有 NVMe 固态盘</translation>
    </message>
    <message>
        <source>schedule %1 reads activations in two halves of the backward, offloaded ones come back for one</source>
        <translation>调度 %1 的反向分两半读取激活，而卸载的激活只回来一次</translation>
    </message>
    <message>
        <source>schedule %1 runs a forward beside a backward, and offloaded activations of both would pass through the same places</source>
        <translation>调度 %1 让前向与反向同时进行，两者卸载的激活会经过同一处位置</translation>
    </message>
    <message>
        <source>the schedule of --recompute %1 decides where activations lie</source>
        <translation>--recompute %1 的重计算方案已决定激活的位置</translation>
    </message>
    <message>
        <source>a dynamic loss scale skips updates on the device; those of offloaded states cannot be skipped</source>
        <translation>动态损失缩放在 GPU 上跳过更新；已卸载状态的更新无法跳过</translation>
    </message>
    <message>
        <source>schedule %1 computes weight gradients apart, when the layer's place has been given away</source>
        <translation>调度 %1 另行计算权重梯度，那时该层的位置已让出</translation>
    </message>
    <message>
        <source>stages with degrees of their own keep everything on the device</source>
        <translation>自带并行度的阶段把全部数据留在 GPU 上</translation>
    </message>
    <message>
        <source>stages with degrees of their own run their operators whole, not in parts</source>
        <translation>自带并行度的阶段不切分算子</translation>
    </message>
    <message>
        <source>operators in parts run on whole sequences, which cp %1 cuts</source>
        <translation>分块的算子处理完整的序列，而 cp %1 会切开序列</translation>
    </message>
    <message>
        <source>operators in parts would each scale their %1 factors by themselves</source>
        <translation>分块的算子会各自缩放 %1 因子</translation>
    </message>
    <message>
        <source>a layer has 2 operations that are cut into parts, attention and MLP: found %1 numbers</source>
        <translation>一层有 2 个可以分块的操作（注意力和 MLP）：给出了 %1 个数字</translation>
    </message>
    <message>
        <source>%1 parts do not divide the %2 sample(s) of a micro-batch</source>
        <translation>%1 块不能整除微批次的 %2 个样本</translation>
    </message>
    <message>
        <source>auto, or numbers of parts from 1 to 1024, such as 4 or 2,4, or layer by layer 2,4x11;1,8</source>
        <translation>auto，或 1 到 1024 的块数，例如 4 或 2,4，或逐层 2,4x11;1,8</translation>
    </message>
    <message>
        <source>sending tensors to host memory reaches %1, the budget is %2</source>
        <translation>把张量送到主机内存后为 %1，预算为 %2</translation>
    </message>
    <message>
        <source>offloading reaches %1, the budget is %2</source>
        <translation>卸载后为 %1，预算为 %2</translation>
    </message>
    <message>
        <source>the norm for clipping is that of all gradients, which are not there when the first layer is updated</source>
        <translation>裁剪用的范数取自全部梯度，而更新第一层时梯度还不全</translation>
    </message>
    <message>
        <source>a dynamic loss scale looks at all gradients before the first layer is updated</source>
        <translation>动态损失缩放要在更新第一层之前查看全部梯度</translation>
    </message>
    <message>
        <source>%1 is one sum over all replicas, which ZeRO %2 in groups of %3 makes in two</source>
        <translation>%1 是对全部副本的一次求和，而 ZeRO %2 以 %3 个为一组，分两次求和</translation>
    </message>
    <message>
        <source>one-bit with Adam sends the whole first moment, of which ZeRO %1 keeps a part</source>
        <translation>使用 Adam 的 one-bit 发送完整的一阶矩，而 ZeRO %1 只保留一部分</translation>
    </message>
    <message>
        <source>%1 chooses among the gradients of a whole step, ZeRO %2 sums each micro-batch by itself</source>
        <translation>%1 从整个步的梯度中选择，而 ZeRO %2 对每个微批次分别求和</translation>
    </message>
    <message>
        <source>%1 needs the gradients of all layers on the device until the update</source>
        <translation>%1 需要所有层的梯度在更新之前都在 GPU 上</translation>
    </message>
    <message>
        <source>%1 keeps what it left out, and a dynamic loss scale changes what it means</source>
        <translation>%1 会保留未发送的部分，而动态损失缩放会改变其含义</translation>
    </message>
    <message>
        <source>one-bit with Adam sends the first moment and freezes the second, which needs updates before it</source>
        <translation>one-bit 与 Adam 一起使用时发送一阶矩并冻结二阶矩，因此之前需要若干次更新</translation>
    </message>
    <message>
        <source>one-bit with Adam sends moments, of which the norm for clipping is not that of the gradients</source>
        <translation>one-bit 与 Adam 一起使用时发送的是矩，其范数不是用于裁剪的梯度范数</translation>
    </message>
    <message>
        <source>one-bit with Adam reads the first moment on the device</source>
        <translation>one-bit 与 Adam 一起使用时在 GPU 上读取一阶矩</translation>
    </message>
    <message>
        <source>%1 sends codes, which cannot be added; --algorithm %2 adds numbers on the way</source>
        <translation>%1 发送编码，而编码不能相加；--algorithm %2 在途中对数值求和</translation>
    </message>
    <message>
        <source>%1 sends whole buckets as they are ready, --sum-order priority parts of them in another order</source>
        <translation>%1 按就绪次序发送整个桶，而 --sum-order priority 以另一次序发送其部分</translation>
    </message>
    <message>
        <source>%1 has no convolutions, whose inputs %2 sends to host memory</source>
        <translation>%1 没有卷积，而 %2 把卷积的输入移到主机内存</translation>
    </message>
    <message>
        <source>%1 moves values between operators, which --parts cuts</source>
        <translation>%1 在算子之间移动数值，而 --parts 会切分算子</translation>
    </message>
    <message>
        <source>%1 chooses values, whatever their layer: --offload-layers has no say</source>
        <translation>%1 按数值选择而不论其所在层：--offload-layers 不起作用</translation>
    </message>
    <message>
        <source>policy %1 and %2 would each choose for the memory that the other leaves</source>
        <translation>策略 %1 与 %2 会各自按对方留下的内存做选择</translation>
    </message>
    <message>
        <source>--schedule best and %1 would each choose for the memory that the other leaves</source>
        <translation>--schedule best 与 %1 会各自按对方留下的内存做选择</translation>
    </message>
    <message>
        <source>policy %1 reaches an arena of %2, the budget is %3</source>
        <translation>策略 %1 的内存池最小为 %2，而预算为 %3</translation>
    </message>
    <message>
        <source>--offload-activations free-time reaches an arena of %1, the budget is %2</source>
        <translation>--offload-activations free-time 的内存池最小为 %1，而预算为 %2</translation>
    </message>
    <message>
        <source>codes of a part of a sequence are whole 32-bit words, so that %1 with sequence parallelism needs a hidden size that 32 divides: %2</source>
        <translation>序列某一部分的编码由完整的 32 位字组成，因此在序列并行下使用 %1 时，隐藏层大小必须是 32 的倍数：%2</translation>
    </message>
    <message>
        <source>--compress-group %1 needs groups of whole replicas that divide dp x cp = %2</source>
        <translation>--compress-group %1 需要由完整副本组成、能整除 dp x cp = %2 的组</translation>
    </message>
    <message>
        <source>--compress-group %1 needs groups of whole replicas that divide dp x cp = %2, multiples of cp = %3</source>
        <translation>--compress-group %1 需要由完整副本组成、能整除 dp x cp = %2 的组，且为 cp = %3 的倍数</translation>
    </message>
    <message>
        <source>--compress-group %1 adds the gradients of all replicas as they are, nothing is left for codes</source>
        <translation>--compress-group %1 直接相加所有副本的梯度，没有剩下可以编码的部分</translation>
    </message>
    <message>
        <source>--compress-group %1 adds whole gradients, of which ZeRO %2 keeps parts</source>
        <translation>--compress-group %1 相加的是完整梯度，而 ZeRO %2 只保留其中一部分</translation>
    </message>
    <message>
        <source>--compress-group %1 adds the gradients of several replicas, asynchronous workers push theirs alone</source>
        <translation>--compress-group %1 相加多个副本的梯度，而异步工作进程各自单独推送</translation>
    </message>
    <message>
        <source>--compress-group %1 adds gradients, one-bit with Adam sends first moments</source>
        <translation>--compress-group %1 相加的是梯度，而 one-bit 与 Adam 一起发送的是一阶矩</translation>
    </message>
    <message>
        <source>--compress-group %1 adds the gradients of one rank, schedule %2 has them on two</source>
        <translation>--compress-group %1 相加的是一个进程的梯度，而调度 %2 的梯度在两个进程上</translation>
    </message>
    <message>
        <source>--compress-group %1 makes groups of replicas, which do not say whose experts they hold</source>
        <translation>--compress-group %1 构成副本组，它们不说明持有哪些专家</translation>
    </message>
    <message>
        <source>%1 needs the attention of all queries on one rank, context parallelism splits them</source>
        <translation>%1 需要一个 rank 上有全部查询的注意力，而上下文并行将其拆分</translation>
    </message>
    <message>
        <source>%1 needs attention probabilities, which a flash kernel does not write</source>
        <translation>%1 需要注意力概率，而 flash 内核不写出它们</translation>
    </message>
    <message>
        <source>framework %1 sends gradients as they are, not %2</source>
        <translation>框架 %1 按原样发送梯度，而不是 %2</translation>
    </message>
    <message>
        <source>framework %1 sums activations as they are, not %2</source>
        <translation>框架 %1 按原样对激活求和，而不是 %2</translation>
    </message>
    <message>
        <source>compressed communication</source>
        <translation>压缩通信</translation>
    </message>
    <message>
        <source>a share above 0 and at most 1</source>
        <translation>大于 0 且不超过 1 的比例</translation>
    </message>
    <message>
        <source>a number of updates</source>
        <translation>更新次数</translation>
    </message>
    <message>
        <source>2, 4 or 8 bits</source>
        <translation>2、4 或 8 位</translation>
    </message>
    <message>
        <source>4, 8 or 16 segments, and at least a level in each</source>
        <translation>4、8 或 16 段，每段至少一级</translation>
    </message>
    <message>
        <source>schedule %1 has weight gradients of several micro-batches under way when a layer is updated</source>
        <translation>调度 %1 在更新一层时还有多个微批次的权重梯度在途</translation>
    </message>
    <message>
        <source>policy %1 keeps %2 in host memory, --offload-%3 says %4</source>
        <translation>策略 %1 把 %2 放在主机内存，而 --offload-%3 为 %4</translation>
    </message>
    <message>
        <source>policy %1 is ZeRO %2, --zero says %3</source>
        <translation>策略 %1 为 ZeRO %2，而 --zero 为 %3</translation>
    </message>
    <message>
        <source>stages with degrees of their own have no runtime policies</source>
        <translation>自带并行度的阶段没有运行时策略</translation>
    </message>
    <message>
        <source>policy %1 keeps parameters from a forward to its backward, but with %2 other micro-batches come in between</source>
        <translation>策略 %1 把参数从前向保留到反向，但 %2 时其间有别的微批次</translation>
    </message>
    <message>
        <source>policy %1: beside everything else the device leaves %2 elements to chunks of parameters; the largest chunk has %3</source>
        <translation>策略 %1：除其他内容外，设备只给参数块留下 %2 个元素，而最大的块有 %3 个</translation>
    </message>
    <message>
        <source>the ranks of node %1 need %2 of host memory; it has %3</source>
        <translation>节点 %1 上的各 rank 需要 %2 主机内存，而该节点只有 %3</translation>
    </message>
    <message>
        <source>the arenas of all %1 rank(s) together need %2; this machine has %3</source>
        <translation>全部 %1 个 rank 的内存池共需 %2；本机有 %3</translation>
    </message>
    <message>
        <source>no strategy fits: %1</source>
        <translation>没有可行的策略：%1</translation>
    </message>
    <message>
        <source>no degrees divide the GPUs, the layers, the heads and the global batch</source>
        <translation>没有并行度能同时整除 GPU 数、层数、注意力头数和全局批</translation>
    </message>
    <message>
        <source>no schedule takes these degrees with this batch</source>
        <translation>没有调度能在该批大小下使用这些并行度</translation>
    </message>
    <message>
        <source>--framework %1 can run none of the strategies: %2</source>
        <translation>--framework %1 无法运行任何策略：%2</translation>
    </message>
    <message>
        <source>an asynchronous server and a worker are on 2 GPUs, %1 has one</source>
        <translation>异步服务器和一个工作者需要 2 块 GPU，%1 只有一块</translation>
    </message>
    <message>
        <source>an asynchronous server and its workers need equal GPUs</source>
        <translation>异步服务器及其工作者需要相同的 GPU</translation>
    </message>
    <message>
        <source>framework %1 has no asynchronous server</source>
        <translation>框架 %1 没有异步服务器</translation>
    </message>
    <message>
        <source>an asynchronous server has equal workers, not stages with degrees of their own</source>
        <translation>异步服务器的各工作者相同，不是各有并行度的阶段</translation>
    </message>
    <message>
        <source>an asynchronous server has workers that see whole sequences: found cp %1</source>
        <translation>异步服务器的工作者处理完整序列：实际为 cp %1</translation>
    </message>
    <message>
        <source>each of the tp %1 GPUs that share a worker&apos;s layers pushes to servers of its own: found %2 server(s)</source>
        <translation>工作者内共享各层的 tp %1 块 GPU 各自向自己的服务器推送：实际为 %2 个服务器</translation>
    </message>
    <message>
        <source>gradients are clipped by the norm of all of them, which several asynchronous servers, or the GPUs of a worker, have in parts</source>
        <translation>梯度按全体梯度的范数裁剪，而多个异步服务器或工作者的多块 GPU 各只有一部分</translation>
    </message>
    <message>
        <source>an asynchronous server holds whole units of parameters: there are %1 unit(s) for %2 server(s)</source>
        <translation>异步服务器持有完整的参数单元：%2 个服务器只有 %1 个单元</translation>
    </message>
    <message>
        <source>each worker of an asynchronous server is one replica on whole sequences</source>
        <translation>异步服务器的每个工作者是一个处理完整序列的副本</translation>
    </message>
    <message>
        <source>a worker of an asynchronous server computes on its device only</source>
        <translation>异步服务器的工作者只在自己的设备上计算</translation>
    </message>
    <message>
        <source>a dynamic loss scale needs the gradients of all workers</source>
        <translation>动态损失缩放需要所有工作者的梯度</translation>
    </message>
    <message>
        <source>a worker of an asynchronous server keeps its parameters and gradients on its device</source>
        <translation>异步服务器的工作者把参数和梯度放在自己的设备上</translation>
    </message>
    <message>
        <source>an update of a worker waits for its backward</source>
        <translation>工作者的更新要等待它的反向计算</translation>
    </message>
    <message>
        <source>an asynchronous server has at least one worker</source>
        <translation>异步服务器至少有一个工作者</translation>
    </message>
    <message>
        <source>each GPU of a tensor-parallel group pushes to servers of its own: %1 server(s) for tp %2</source>
        <translation>张量并行组的每块 GPU 向自己的服务器推送：tp %2 对应 %1 个服务器</translation>
    </message>
    <message>
        <source>the devices of an asynchronous server are 0, 1, ... in order</source>
        <translation>异步服务器的设备依次为 0、1、……</translation>
    </message>
    <message>
        <source>a worker of an asynchronous server has every stage on one rank</source>
        <translation>异步服务器的工作者的每个阶段只在一个 rank 上</translation>
    </message>
    <message>
        <source>a worker of an asynchronous server pushes gradients once in a run</source>
        <translation>异步服务器的工作者每次运行推送一次梯度</translation>
    </message>
    <message>
        <source>an asynchronous server has workers with all experts</source>
        <translation>异步服务器的每个工作者拥有全部专家</translation>
    </message>
    <message>
        <source>an asynchronous server keeps all optimizer states: there is nothing to shard</source>
        <translation>异步服务器保存全部优化器状态：没有可切分的</translation>
    </message>
    <message>
        <source>an asynchronous server has workers that keep everything on their GPU</source>
        <translation>异步服务器的工作者把一切都放在自己的 GPU 上</translation>
    </message>
    <message>
        <source>an asynchronous server has the first moment, which one-bit with Adam would send</source>
        <translation>异步服务器持有一阶矩，而 Adam 的 one-bit 要发送它</translation>
    </message>
    <message>
        <source>an asynchronous server updates before it knows all workers&apos; gradients</source>
        <translation>异步服务器在得知全部工作者的梯度之前就更新</translation>
    </message>
    <message>
        <source>%1 is a layer list: adapters are for linear layers of transformers</source>
        <translation>%1 是层列表：适配器用于 Transformer 的线性层</translation>
    </message>
    <message>
        <source>%1 has experts: adapters are for dense transformers</source>
        <translation>%1 有专家：适配器用于稠密 Transformer</translation>
    </message>
    <message>
        <source>%1 has latent attention: adapters are for projections of queries, keys and values</source>
        <translation>%1 使用潜在注意力：适配器用于查询、键和值的投影</translation>
    </message>
    <message>
        <source>%1 has attention sinks: adapters are for attention without them</source>
        <translation>%1 的注意力有汇点：适配器用于没有汇点的注意力</translation>
    </message>
    <message>
        <source>%1 predicts several tokens: adapters are for models that predict one</source>
        <translation>%1 一次预测多个词元：适配器用于只预测一个词元的模型</translation>
    </message>
    <message>
        <source>stages with degrees of their own have no adapters</source>
        <translation>各有并行度的阶段没有适配器</translation>
    </message>
    <message>
        <source>an asynchronous server sends all parameters, not those of adapters alone</source>
        <translation>异步服务器发送全部参数，而不只是适配器的参数</translation>
    </message>
    <message>
        <source>framework %1 is known as it trains all parameters: what it allocates for adapters is not</source>
        <translation>框架 %1 训练全部参数时的情况是已知的，它为适配器分配什么则未知</translation>
    </message>
    <message>
        <source>policy %1 moves layers whose parameters are all trained, not adapters</source>
        <translation>策略 %1 移动的是全部参数都参与训练的层，而不是适配器</translation>
    </message>
    <message>
        <source>%1 is a layer list: it has no sequences that could be packed</source>
        <translation>%1 是层列表：没有可以打包的序列</translation>
    </message>
    <message>
        <source>packed sequences of %1 tokens are longer than a row of %2</source>
        <translation>%1 个词元的打包序列比 %2 个词元的一行更长</translation>
    </message>
    <message>
        <source>%1 has learned positions or sees tokens on both sides: sequences are packed in causal models with others</source>
        <translation>%1 使用学习得到的位置，或能看到两侧的词元：只有使用其他位置编码的因果模型可以打包序列</translation>
    </message>
    <message>
        <source>%1 attends to a window or chunks: sequences are packed where it attends to all tokens before</source>
        <translation>%1 只注意窗口或分块内的词元：只有注意此前全部词元的模型可以打包序列</translation>
    </message>
    <message>
        <source>packed sequences need one attention kernel</source>
        <translation>打包序列需要单一的注意力内核</translation>
    </message>
    <message>
        <source>packed sequences are not cut by cp %1</source>
        <translation>打包序列不能由 cp %1 切分</translation>
    </message>
    <message>
        <source>%1 worker(s) on %2 GPU(s) each and %3 server(s) need %4 GPUs, but %5 has %6</source>
        <translation>%1 个各占 %2 块 GPU 的工作者和 %3 个服务器需要 %4 块 GPU，但 %5 只有 %6 块</translation>
    </message>
    <message>
        <source>with ZeRO %1 each of %2 rank(s) serves the part of which it has the optimizer states, not %3 server(s)</source>
        <translation>ZeRO %1 时 %2 个 rank 各服务于自己持有优化器状态的那一份，不是 %3 个服务器</translation>
    </message>
    <message>
        <source>all %1 strategies need more memory in %2 than a GPU has, or cannot run in it</source>
        <translation>全部 %1 个策略在 %2 中所需的显存都超过一个 GPU 的显存，或无法在其中运行</translation>
    </message>
    <message>
        <source>all %1 strategies need more memory than %2 % of a GPU</source>
        <translation>全部 %1 个策略所需的显存都超过一个 GPU 的 %2 %</translation>
    </message>
    <message>
        <source>parameters and optimizer states alone take %1 on each of %2 GPU(s), however they are cut; %3 are usable</source>
        <translation>无论怎样切分，仅参数和优化器状态就要占用 %2 个 GPU 中每个的 %1；可用 %3</translation>
    </message>
    <message>
        <source>for example: %1</source>
        <translation>例如：%1</translation>
    </message>
    <message>
        <source>no partition fits: the layers need more memory than all GPUs have, with whole optimizer states</source>
        <translation>没有可行的划分：带完整优化器状态时，各层所需显存超过全部 GPU</translation>
    </message>
    <message>
        <source>interrupted before a strategy was found</source>
        <translation>在找到策略之前被中断</translation>
    </message>
    <message>
        <source>%1 %2 does not divide the %3 attention heads</source>
        <translation>%1 %2 不能整除 %3 个注意力头</translation>
    </message>
    <message>
        <source>%1 %2 does not divide the %3 key-value heads</source>
        <translation>%1 %2 不能整除 %3 个键值头</translation>
    </message>
    <message>
        <source>%1 %2 does not divide the %3 columns of the feed-forward layer (ffn_hidden)</source>
        <translation>%1 %2 不能整除前馈层的 %3 列（ffn_hidden）</translation>
    </message>
    <message>
        <source>%1 does not divide the %2 tokens of a sequence</source>
        <translation>%1 不能整除一个序列的 %2 个词元</translation>
    </message>
    <message>
        <source>at most the model's %1 positions</source>
        <translation>不超过模型的 %1 个位置</translation>
    </message>
    <message>
        <source>at least %1</source>
        <translation>至少 %1</translation>
    </message>
    <message>
        <source>%1: a layer list is split by data, tensor and pipeline parallelism only</source>
        <translation>%1：层列表只能按数据并行、张量并行和流水线并行切分</translation>
    </message>
    <message>
        <source>tp %1 cuts linear layers; %2 is a convolution</source>
        <translation>tp %1 切分线性层；%2 是卷积</translation>
    </message>
    <message>
        <source>tp %1 cuts linear layers; %2 is a batch norm</source>
        <translation>tp %1 切分线性层；%2 是批归一化</translation>
    </message>
    <message>
        <source>tp %1 does not divide the %2 features of %3</source>
        <translation>tp %1 不能整除 %3 的 %2 个特征</translation>
    </message>
    <message>
        <source>tp %1 divides the features of no linear layer</source>
        <translation>tp %1 不能整除任何线性层的特征</translation>
    </message>
    <message>
        <source>an unknown key with value %1</source>
        <translation>未知的键，其值为 %1</translation>
    </message>
    <message>
        <source>a file or the name of a shipped model</source>
        <translation>文件，或自带模型的名称</translation>
    </message>
    <message>
        <source>a file or a shipped model</source>
        <translation>文件，或自带的模型</translation>
    </message>
    <message>
        <source>%1 does not divide the %2 %3</source>
        <translation>%1 不能整除 %2 个 %3</translation>
    </message>
    <message>
        <source>the model has no experts: --ep 1 and --etp 1</source>
        <translation>模型没有专家：--ep 1 和 --etp 1</translation>
    </message>
    <message>
        <source>the model has no experts: --expert-capacity 0</source>
        <translation>模型没有专家：--expert-capacity 0</translation>
    </message>
    <message>
        <source>a mixture of experts needs products without biases beside it, and norms before it</source>
        <translation>混合专家需要旁边的矩阵乘没有偏置，并在归一化之后</translation>
    </message>
    <message>
        <source>ep %1 does not divide the %2 experts of a layer</source>
        <translation>ep %1 不能整除一层的 %2 个专家</translation>
    </message>
    <message>
        <source>etp %1 does not divide the %2 columns of an expert</source>
        <translation>etp %1 不能整除一个专家的 %2 列</translation>
    </message>
    <message>
        <source>tp %1 does not divide the %2 columns of the shared experts</source>
        <translation>tp %1 不能整除共享专家的 %2 列</translation>
    </message>
    <message>
        <source>tensor-parallel ranks would send the same tokens to the experts: --sequence-parallel</source>
        <translation>张量并行的各 rank 会把相同的词元发给专家：--sequence-parallel</translation>
    </message>
    <message>
        <source>biases of experts would be added by each of etp %1 ranks: --etp 1</source>
        <translation>专家的偏置会被 etp 的 %1 个 rank 各加一次：--etp 1</translation>
    </message>
    <message>
        <source>a softmax over one chosen expert is always 1, so the router would not learn</source>
        <translation>只选一个专家时 softmax 恒为 1，路由器学不到东西</translation>
    </message>
    <message>
        <source>multi-token prediction is for decoders with norms before their blocks and rotary positions</source>
        <translation>多词元预测用于块前归一化、旋转位置的解码器</translation>
    </message>
    <message>
        <source>%1 has no experts that ep %2 x etp %3 could share</source>
        <translation>%1 没有可供 ep %2 x etp %3 分担的专家</translation>
    </message>
    <message>
        <source>balanced, equal, worst, gini:0.15 (above 0, below 1), zipf:0.5 (above 0, at most 10), a number of at least 1, or file:F with measured loads</source>
        <translation>balanced、equal、worst、gini:0.15（大于 0 且小于 1）、zipf:0.5（大于 0 且不超过 10）、不小于 1 的数，或 file:F（实测负载）</translation>
    </message>
    <message>
        <source>%1 has no experts whose capacity could be limited</source>
        <translation>%1 没有可以限制容量的专家</translation>
    </message>
    <message>
        <source>ep %1 x etp %2 does not divide tp x cp x dp = %3</source>
        <translation>ep %1 x etp %2 不能整除 tp x cp x dp = %3</translation>
    </message>
    <message>
        <source>stages with degrees of their own do not share experts</source>
        <translation>并行度各不相同的流水级不分担专家</translation>
    </message>
    <message>
        <source>ZeRO groups below dp do not say which replicas of an expert they hold</source>
        <translation>小于 dp 的 ZeRO 组没有说明持有专家的哪些副本</translation>
    </message>
    <message>
        <source>the states of experts stay on the device</source>
        <translation>专家的状态留在设备上</translation>
    </message>
    <message>
        <source>the measured loads are of %1 experts, a layer of the model has %2</source>
        <translation>实测负载有 %1 个专家，模型的一层有 %2 个</translation>
    </message>
    <message>
        <source>the measured loads are of %1 layers, the model has %2 with experts</source>
        <translation>实测负载有 %1 层，模型有 %2 层含专家</translation>
    </message>
    <message>
        <source>--expert-node-ranks %1 does not divide ep %2</source>
        <translation>--expert-node-ranks %1 不能整除 ep %2</translation>
    </message>
    <message>
        <source>the ranks of an expert group on one node do not have consecutive experts with this placement</source>
        <translation>按此放置，专家组在一个节点上的 rank 不持有连续的专家</translation>
    </message>
    <message>
        <source>%1 sends rows of tokens in codes, --expert-dispatcher %2 gathers tokens</source>
        <translation>%1 以编码发送词元的行，而 --expert-dispatcher %2 收集词元</translation>
    </message>
    <message>
        <source>codes of rows are whole 32-bit words, so that --compress-dispatch needs a hidden size that 32 divides: %1</source>
        <translation>行的编码由完整的 32 位字组成，因此 --compress-dispatch 要求隐藏维度能被 32 整除：%1</translation>
    </message>
    <message>
        <source>tokens that chose an expert: a number of at least 0</source>
        <translation>选择某个专家的词元数：不小于 0 的数</translation>
    </message>
    <message>
        <source>at least one expert that tokens chose</source>
        <translation>至少一个被词元选择的专家</translation>
    </message>
    <message>
        <source>the loads of at least one layer</source>
        <translation>至少一层的负载</translation>
    </message>
    <message>
        <source>windows, chunks, sinks, capped scores and latent attention need one attention kernel: --attention flash</source>
        <translation>窗口、分块、注意力汇、分数软上限和潜在注意力需要单个注意力核函数：--attention flash</translation>
    </message>
    <message>
        <source>windows and chunks of attention need a causal model</source>
        <translation>注意力的窗口和分块需要因果模型</translation>
    </message>
    <message>
        <source>norms over all query heads at once need all of them on each rank: --tp 1</source>
        <translation>对所有查询头一起归一化时，每个 rank 都要有全部的头：--tp 1</translation>
    </message>
    <message>
        <source>tensor-parallel ranks sum the gradients of norms of queries and keys only with --sequence-parallel</source>
        <translation>只有使用 --sequence-parallel，张量并行的各 rank 才会对查询和键归一化的梯度求和</translation>
    </message>
    <message>
        <source>attention sinks need all keys of a head on each rank: --context all-gather</source>
        <translation>注意力汇要求每个 rank 有一个头的全部键：--context all-gather</translation>
    </message>
    <message>
        <source>latent attention does not deal out heads over context-parallel ranks: --context all-gather or ring</source>
        <translation>潜在注意力不能把头分配给上下文并行的各 rank：--context all-gather 或 ring</translation>
    </message>
    <message>
        <source>norms and multipliers behind attention and MLP need products without biases before them</source>
        <translation>注意力和 MLP 之后的归一化与乘数要求之前的矩阵乘没有偏置</translation>
    </message>
    <message>
        <source>off, because the pooler reads the first token, which lies on one rank only</source>
        <translation>关闭，因为 pooler 读取第一个词元，它只在一个 rank 上</translation>
    </message>
    <message>
        <source>1, because the pooler reads the first token, which lies on one rank only</source>
        <translation>1，因为 pooler 读取第一个词元，它只在一个 rank 上</translation>
    </message>
    <message>
        <source>degrees whose product divides %1</source>
        <translation>乘积能整除 %1 的并行度</translation>
    </message>
    <message>
        <source>a larger cluster</source>
        <translation>更大的集群</translation>
    </message>
    <message>
        <source>a smaller --tp, --cp or --pp</source>
        <translation>更小的 --tp、--cp 或 --pp</translation>
    </message>
    <message>
        <source>fewer --fix</source>
        <translation>更少的 --fix</translation>
    </message>
    <message>
        <source>another --global-batch</source>
        <translation>另一个全局批大小</translation>
    </message>
    <message>
        <source>a larger --global-batch</source>
        <translation>更大的全局批大小</translation>
    </message>
    <message>
        <source>a smaller --micro-batch</source>
        <translation>更小的微批</translation>
    </message>
    <message>
        <source>leave out %1</source>
        <translation>去掉 %1</translation>
    </message>
    <message>
        <source>fewer replicas or tensor ranks</source>
        <translation>更少的副本或张量并行 rank</translation>
    </message>
    <message>
        <source>degrees of which each divides the next larger one, such as %1</source>
        <translation>彼此依次整除的并行度，例如 %1</translation>
    </message>
    <message>
        <source>tp 1 in every stage</source>
        <translation>每个阶段的 tp 都为 1</translation>
    </message>
    <message>
        <source>the same tp on the first and the last stage</source>
        <translation>首尾阶段的 tp 相同</translation>
    </message>
    <message>
        <source>a global batch that is a multiple of %1</source>
        <translation>是 %1 的倍数的全局批大小</translation>
    </message>
    <message>
        <source>%1 or %2 micro-batch(es)</source>
        <translation>%1 或 %2 个微批</translation>
    </message>
    <message>
        <source>a number for each of the %1 rank(s)</source>
        <translation>为 %1 个 rank 各给一个数</translation>
    </message>
    <message>
        <source>%1 so that every stage has nodes of one kind</source>
        <translation>%1，使每个阶段只有一种节点</translation>
    </message>
    <message>
        <source>%1 with role last</source>
        <translation>%1，role 在最后</translation>
    </message>
    <message>
        <source>a larger --memory-limit</source>
        <translation>更大的 --memory-limit</translation>
    </message>
    <message>
        <source>a plan that needs less memory</source>
        <translation>需要更少内存的方案</translation>
    </message>
    <message>
        <source>a smaller model or batch</source>
        <translation>更小的模型或批</translation>
    </message>
    <message>
        <source>fewer ranks</source>
        <translation>更少的 rank</translation>
    </message>
    <message>
        <source>%1: %2 on stage %3 of %4</source>
        <translation>%1：阶段 %3 为 %2，共 %4</translation>
    </message>
    <message>
        <source>%1 micro-batch(es) on %2 pipeline rank(s) with %3 virtual stage(s) each are more than %4 million actions</source>
        <translation>%2 个流水线 rank、每个 %3 个虚拟阶段上的 %1 个微批，超过了 %4 百万个动作</translation>
    </message>
    <message>
        <source>%1 would take about %2 and %3 here</source>
        <translation>%1，在此约需 %2 和 %3</translation>
    </message>
    <message>
        <source>%1 micro-batch(es) on %2 pipeline rank(s): %3 actions</source>
        <translation>%2 个流水线 rank 上的 %1 个微批：%3 个动作</translation>
    </message>
</context>
<context>
    <name>foreshard::DockRail</name>
    <message>
        <source>Panels on the left</source>
        <translation>左侧面板</translation>
    </message>
    <message>
        <source>Panels on the right</source>
        <translation>右侧面板</translation>
    </message>
</context>
</TS>
