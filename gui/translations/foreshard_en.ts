<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>foreshard::Child</name>
    <message numerus="yes">
        <source>foreshard said nothing for %n second(s) and was stopped.</source>
        <translation>
            <numerusform>foreshard said nothing for %n second and was stopped.</numerusform>
            <numerusform>foreshard said nothing for %n seconds and was stopped.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>foreshard::KpiStrip</name>
    <message numerus="yes">
        <source>%n stage(s)</source>
        <translation>
            <numerusform>%n stage</numerusform>
            <numerusform>%n stages</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>foreshard::SearchPanel</name>
    <message numerus="yes">
        <source>%n found, best %1</source>
        <translation>
            <numerusform>%n found, best %1</numerusform>
            <numerusform>%n found, best %1</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>foreshard::SuggestionList</name>
    <message numerus="yes">
        <source>%n change(s) simulated: none makes a step shorter.</source>
        <translation>
            <numerusform>%n change simulated: it makes no step shorter.</numerusform>
            <numerusform>%n changes simulated: none makes a step shorter.</numerusform>
        </translation>
    </message>
</context>
</TS>
