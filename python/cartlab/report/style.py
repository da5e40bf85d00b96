"""The page's style sheet: one constant, light and dark by the reader's setting, and a form for paper."""

from __future__ import annotations

from cartlab.report.markup import Html

STYLE = Html("""
:root {
  color-scheme:light dark; --bg:#f7f6f3; --card:#fff; --text:#1c1f24; --soft:#5d636e; --line:#dedbd3;
  --faint:#eceae4; --kept:#15794a; --small:#0b7285; --promoted:#2563c9; --undecided:#6a707a;
  --slower:#b35309; --failed:#b4232a; --guard:#8a6d1d; --accent:#2563c9;
}
@media (prefers-color-scheme:dark) {
  :root {
    --bg:#14161a; --card:#1c1f25; --text:#e7e7e4; --soft:#a0a6b0; --line:#363b45; --faint:#262a32;
    --kept:#46c088; --small:#4cc3d6; --promoted:#82aefc; --undecided:#a6acb6; --slower:#f0a361;
    --failed:#ff8b84; --guard:#d9b650; --accent:#82aefc;
  }
}
* { box-sizing:border-box }
body {
  margin:0; background:var(--bg); color:var(--text);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif; -webkit-text-size-adjust:100%;
  font-variant-numeric:tabular-nums;
}
main { max-width:1180px; margin:0 auto; padding:28px 24px 64px }
h1 { font-size:27px; line-height:1.2; margin:0 0 4px; letter-spacing:-.01em; overflow-wrap:anywhere }
h2 { font-size:19px; margin:44px 0 6px }
h3 { font-size:15px; margin:0; overflow-wrap:anywhere }
p { margin:0 0 12px; max-width:78ch }
.soft,figcaption { color:var(--soft) }
code,.mono { font:13px/1.45 ui-monospace,"SF Mono",Menlo,Consolas,monospace; overflow-wrap:anywhere }
code.line {
  display:block; background:var(--faint); border-radius:6px; padding:7px 10px; margin-top:4px;
}
.facts { color:var(--soft); font-size:14px }
.facts span:not(:last-child)::after { content:" · " }
.tiles {
  display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:12px; margin:22px 0 0;
  padding:0; list-style:none;
}
.tiles li,.card {
  background:var(--card); border:1px solid var(--line); border-radius:10px; padding:14px 16px;
}
.tiles b { display:block; font-size:22px; font-weight:600; line-height:1.25; overflow-wrap:anywhere }
.tiles small { color:var(--soft); font-size:13px }
.tiles span { color:var(--soft); font-size:13px }
.next { border-left:4px solid var(--accent) }
ol.actions { margin:0; padding:0 0 0 20px }
ol.actions li { margin:0 0 12px }
ol.actions li:last-child { margin:0 }
.remarks { border-left:4px solid var(--slower); margin-top:16px }
.remarks p:last-child { margin:0 }
.legend {
  display:flex; flex-wrap:wrap; gap:4px 18px; list-style:none; margin:0 0 10px; padding:0;
  font-size:13px; color:var(--soft);
}
.badge { width:14px; height:14px; vertical-align:-2px }
.wrap { overflow-x:auto }
table { border-collapse:collapse; width:100%; font-size:14px }
th,td { text-align:left; padding:7px 10px; border-bottom:1px solid var(--line); vertical-align:top }
thead th {
  font-size:12.5px; font-weight:600; color:var(--soft); vertical-align:bottom; white-space:nowrap;
}
tbody th { font-weight:400 }
td.num,th.num { text-align:right; white-space:nowrap }
table.forest {
  background:var(--card); border:1px solid var(--line); border-radius:10px; border-spacing:0;
  border-collapse:separate;
}
table.forest tr:last-child>* { border-bottom:0 }
table.forest td,table.forest tbody th { vertical-align:middle }
.who { width:31% }
.who small {
  display:block; color:var(--soft); font-size:12.5px; line-height:1.35; overflow-wrap:anywhere;
}
.plot { position:relative; padding:0; min-width:180px; height:46px }
.plot>svg { position:absolute; inset:0; width:100%; height:100%; overflow:hidden }
thead .plot { height:30px }
.none { display:block; width:max-content; margin:auto; padding:0 8px; background:var(--card) }
.none { color:var(--soft); font-size:13px; position:relative }
th code { white-space:nowrap }
pre { white-space:pre-wrap; overflow-wrap:anywhere }
.says { width:27% }
.says small { display:block; color:var(--soft); font-size:12.5px; line-height:1.35 }
.status { font-weight:600; white-space:nowrap }
svg text { font:11px system-ui,-apple-system,"Segoe UI",sans-serif; fill:var(--soft) }
.ref { stroke-width:1 }
.one { stroke:var(--text); stroke-width:1; opacity:.45 }
.guard { stroke:var(--guard); stroke-dasharray:2 3 }
.margin { stroke:var(--kept); stroke-dasharray:6 4 }
.tick { stroke:var(--line) }
.mark { stroke:var(--card); stroke-width:1.2 }
.mark.ring { fill:var(--card); stroke:var(--undecided); stroke-width:2.4 }
.mark.cross { fill:none; stroke:var(--failed); stroke-width:2.6; stroke-linecap:round }
.bar { stroke-width:3 }
.bar.open { stroke-width:1.6; stroke-dasharray:1 5; stroke-linecap:round }
.end { fill:none; stroke-width:2 }
path.kept { fill:var(--kept) }
path.small { fill:var(--small) }
path.promoted { fill:var(--promoted) }
path.slower { fill:var(--slower) }
path.end { fill:none }
.bar.kept,.end.kept { stroke:var(--kept) }
.bar.small,.end.small { stroke:var(--small) }
.bar.promoted,.end.promoted { stroke:var(--promoted) }
.bar.undecided,.end.undecided { stroke:var(--undecided) }
.bar.slower,.end.slower { stroke:var(--slower) }
.bar.failed,.end.failed { stroke:var(--failed) }
.key { font-size:13px; color:var(--soft); margin:0 0 10px; max-width:none }
.key i {
  display:inline-block; width:22px; height:0; border-top:2px solid; vertical-align:4px;
  margin-right:5px;
}
.key span { margin-right:18px; white-space:nowrap }
i.k-one { border-color:var(--text); opacity:.5 }
i.k-guard { border-color:var(--guard); border-top-style:dotted }
i.k-margin { border-color:var(--kept); border-top-style:dashed }
i.k-for { border-color:var(--accent) }
i.k-against { border-color:var(--slower); border-top-style:dashed }
i.k-alpha { border-color:var(--guard) }
.cards { display:grid; grid-template-columns:repeat(auto-fill,minmax(min(320px,100%),1fr)); gap:14px }
.card figure { margin:8px 0 0 }
figcaption { font-size:12.5px; line-height:1.35 }
.chart { display:block; width:100%; height:auto }
.grid { stroke:var(--faint) }
.alpha { stroke:var(--guard) }
.word { fill:var(--guard) }
.path { fill:none; stroke-width:2; stroke-linejoin:round }
.for { stroke:var(--accent) }
.against { stroke:var(--slower); stroke-dasharray:5 4 }
.estimate { stroke:var(--accent); stroke-width:1.5; stroke-dasharray:7 4 }
.seam { stroke:var(--soft); stroke-dasharray:2 3 }
.block { fill:var(--accent) }
.block.second { fill:var(--slower) }
.block.dropped { fill:none; stroke:var(--soft); stroke-width:1.6 }
dl { display:grid; grid-template-columns:auto 1fr; gap:2px 12px; margin:10px 0 0; font-size:13px }
dt { color:var(--soft) }
dd { margin:0; text-align:right; overflow-wrap:anywhere }
.warn { color:var(--failed); font-weight:600 }
.card ul { margin:6px 0 0; padding-left:18px; font-size:13px }
.caption {
  display:flex; justify-content:space-between; gap:12px; flex-wrap:wrap; font-size:14px;
  margin-top:12px;
}
.caption em { color:var(--soft); font-style:normal }
.meter { display:block; width:100%; height:20px }
.track { fill:var(--faint) }
.fill { fill:var(--accent) }
.fill.full { fill:var(--kept) }
.goal { stroke:var(--text); stroke-width:2 }
details { margin-top:10px }
summary { cursor:pointer; color:var(--soft) }
@media screen and (max-width:720px) {
  main { padding:18px 14px 48px }
  h1 { font-size:22px }
  h2 { margin-top:34px }
  th,td { padding:6px 5px }
  thead th { white-space:normal }
  table.forest,table.forest tbody,table.forest tr { display:block }
  table.forest thead,table.forest thead tr { display:block }
  table.forest thead th:not(.plot) { display:none }
  table.forest thead .plot { display:block; border-bottom:1px solid var(--line) }
  table.forest tbody tr { border-bottom:1px solid var(--line) }
  table.forest tbody tr:last-child { border-bottom:0 }
  table.forest tbody th,table.forest tbody td {
    display:block; width:auto; border:0; padding:6px 12px 2px;
  }
  table.forest tbody td.plot { padding:0; height:34px }
  table.forest tbody td.says { padding-bottom:9px }
  .none { line-height:34px }
}
@media print {
  :root { --bg:#fff; --card:#fff; --text:#000; --soft:#444; --line:#bbb; --faint:#eee }
  body { font-size:11pt }
  main { max-width:none; padding:0 }
  .card,.tiles li,tr,figure,h2 { break-inside:avoid }
  h2 { break-after:avoid }
  .cards { grid-template-columns:repeat(2,1fr) }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact }
}
""")
