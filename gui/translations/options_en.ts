<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>option groups</name>
    <message>
        <source>parallelism</source>
        <translation>Parallelism</translation>
    </message>
    <message>
        <source>batch</source>
        <translation>Batch</translation>
    </message>
    <message>
        <source>memory</source>
        <translation>Memory</translation>
    </message>
    <message>
        <source>numbers</source>
        <translation>Numbers</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>Communication</translation>
    </message>
    <message>
        <source>run</source>
        <translation>Run</translation>
    </message>
    <message>
        <source>options</source>
        <translation>Options</translation>
    </message>
</context>
<context>
    <name>objectives</name>
    <message>
        <source>pareto</source>
        <translation>pareto: time and memory</translation>
    </message>
</context>
</TS>
