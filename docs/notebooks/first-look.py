# %% [markdown]
# # A first look at a campaign
#
# Reads a campaign folder (what `tandem-server campaign export` or `publish` wrote, or the bench left), draws three of the papers'
# figures anew from its tables, and asks a question that no paper asks. It opens in any Jupyter whose Python has
# `tandem-server[notebook]` and matplotlib; `TANDEM_CAMPAIGN` names the folder. What a column means and its unit: `c.columns`.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tandem_server.analysis import load

c = load(os.environ.get("TANDEM_CAMPAIGN", "campaign"))
print(c)
print(*c.missing[:10], sep="\n")

# %% [markdown]
# ## Mohan et al., Figure 5 (a): goodput by mobility
# Medians over downloads with their quartiles; without the campaigns of the other papers, which shape their links, and of congestion
# controls. Absent is `<NA>`: a run that failed has no goodput and is left out here.

# %%
downloads = c.tables.get("download", pd.DataFrame(columns=["run", "kind", "campaign", "goodput_bit_per_s"]))
downloads = downloads[
    ~downloads["campaign"].fillna("").astype("string").str.match("adarsh|chen|cordero|mohan-congestion")
]
downloads = downloads.merge(c.runs[["run", "mobility", "operator"]], on="run").dropna(
    subset=["mobility", "goodput_bit_per_s"]
)
downloads = downloads.astype({"goodput_bit_per_s": float})
downloads["who"] = np.where(
    downloads["kind"] == "mptcp", "MPTCP", "TCP " + downloads["operator"].fillna("?").astype(str)
)
goodput = (
    downloads.groupby(["mobility", "who"])["goodput_bit_per_s"].quantile([0.25, 0.5, 0.75]).unstack().astype(float)
    / 1e6
)
print(goodput.round(2).to_string() if len(goodput) else "no download at a time of a known mobility class")

classes, who = sorted(downloads["mobility"].unique()), sorted(downloads["who"].unique())
for n, name in enumerate(who):
    own = goodput.xs(name, level="who").reindex(classes)
    at = np.arange(len(classes)) + (n + 0.5) / len(who) - 0.5
    errors = [own[0.5] - own[0.25], own[0.75] - own[0.5]]
    plt.bar(
        at, own[0.5], 0.8 / len(who), yerr=errors, capsize=3, label=f"{name} (n = {(downloads['who'] == name).sum()})"
    )
plt.xticks(range(len(classes)), classes)
plt.ylabel("goodput, Mbit/s")
if who:
    plt.legend()
plt.show()

# %% [markdown]
# ## Mohan et al., Figure 2: network events in five minutes
# Over the time in which each operator's modem was polled: handovers, and drops of the signal of 6 dB or more between two polls.

# %%
events = c.events[c.events["kind"].isin(["handover", "signal_drop"])]
large = events["change_db"].abs() > 10
events = events.assign(
    what=np.select(
        [events["kind"] == "handover", large.fillna(False)], ["handover", "drop over 10 dB"], "drop up to 10 dB"
    )
)
polls = c.radio.sort_values("utc")
gaps = polls.groupby(["probe", "path"])["utc"].diff().dt.total_seconds()
polled_s = gaps.where(gaps < 30, 0).groupby(polls["operator"]).sum()  # a longer gap is a kit that was off
counts = events.groupby(["operator", "what"]).size().unstack(fill_value=0)
rates = counts.mul(300).div(polled_s, axis=0).dropna(how="all")
print(rates.round(2).to_string() if len(rates) else "no drop of the signal and no handover")
if len(rates):
    rates.plot.bar(ax=plt.gca(), rot=0, ylabel="events in five minutes", xlabel="")
plt.show()

# %% [markdown]
# ## Mohan et al., Figure 3: what an event does to goodput
# The largest drop of the signal while a run went on: goodput of its subflows by path, as the probe saw it, from 10 s before to 20 s after.

# %%
flows = c.subflows[c.subflows["end"] == "probe"]
spans = flows.groupby("run").agg(
    probe=("probe", "first"), first=("utc", "min"), last=("utc", "max"), paths=("path", "nunique")
)
second = pd.Timedelta("1s")
shown = pd.DataFrame()
for drop in events[events["change_db"] < 0].sort_values("change_db").itertuples():
    under_way = (
        (spans["probe"] == drop.probe) & (spans["first"] < drop.utc - second) & (spans["last"] > drop.utc + second)
    )
    if under_way.any():
        shown = flows[flows["run"] == spans[under_way]["paths"].idxmax()]
        shown = shown.assign(seconds=(shown["utc"] - drop.utc).dt.total_seconds())
        shown = shown[shown["seconds"].between(-10, 20)]
        print(f"{drop.utc:%Y-%m-%d %H:%M:%S} UTC, {drop.probe}, operator {drop.operator}: {drop.change_db:g} dB")
        break
else:
    print("no drop of the signal while a run was recorded")
for path, own in shown.groupby("path") if len(shown) else ():
    binned = own.groupby((own["seconds"] * 2).round() / 2)["goodput_bit_per_s"].mean().astype(float) / 1e6
    plt.plot(binned.index, binned, label=path)
plt.axvline(0, color="grey", linestyle=":")
plt.xlabel("seconds from the event")
plt.ylabel("goodput, Mbit/s")
if len(shown):
    plt.legend(title="path")
plt.show()

# %% [markdown]
# ## A question of our own: do both networks have their bad moments together?
# Two operators help only as far as the one is good while the other is poor. A second counts as poor where the modem had no service or
# RSRP was in the lowest quarter of what that kit saw of that operator; were the two independent, both would be poor in the product of
# their shares of seconds.

# %%
radio = c.radio.dropna(subset=["operator"]).assign(second=lambda t: t["utc"].dt.floor("1s"))
out = radio["state"].isin(["searching", "limited", "no_service"])
lowest = radio.groupby(["probe", "operator"])["rsrp_dbm"].rank(pct=True) <= 0.25
radio = radio.assign(poor=out | lowest.fillna(False))[radio["rsrp_dbm"].notna() | out]
seconds = radio.pivot_table(index=["probe", "second"], columns="operator", values="poor", aggfunc="max")
pairs = []
for n, a in enumerate(seconds.columns):
    for b in seconds.columns[n + 1 :]:
        both = seconds[[a, b]].dropna().astype(bool)
        one, other = both[a], both[b]
        if len(both):
            told = {
                "operators": f"{a} and {b}",
                "seconds": len(both),
                "first_poor": one.mean(),
                "second_poor": other.mean(),
            }
            pairs.append({**told, "both_poor": (one & other).mean(), "if_independent": one.mean() * other.mean()})
answer = pd.DataFrame(pairs)
print(answer.round(4).to_string(index=False) if pairs else "no two operators were polled in the same second")
for row in answer.itertuples():
    if row.if_independent:
        print(
            f"{row.operators}: both are poor {row.both_poor / row.if_independent:.2f} times as often as if they were independent"
        )
