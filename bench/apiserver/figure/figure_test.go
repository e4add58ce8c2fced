package figure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"none":         {nil, 0},
		"one":          {[]float64{3}, 3},
		"odd":          {[]float64{9, 1, 5}, 5},
		"even":         {[]float64{4, 1, 3, 2}, 2.5},
		"one far away": {[]float64{1, 2, 1000}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			given := append([]float64(nil), c.values...)
			if got := Median(c.values); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if diff := cmp.Diff(given, c.values); diff != "" {
				t.Errorf("the values were changed: %s", diff)
			}
		})
	}
}

func samples(values ...float64) []Sample {
	var out []Sample
	for _, v := range values {
		out = append(out, Sample{Value: v})
	}
	return out
}

func TestRatioAndVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		row     Row
		ratio   float64
		verdict string
	}{
		"a rate, met":                {Row{Unit: PerSecond, Target: Target{Times: 5}, Ours: samples(60), Peer: samples(10)}, 6, "met"},
		"a rate, just met":           {Row{Unit: PerSecond, Target: Target{Times: 5}, Ours: samples(50), Peer: samples(10)}, 5, "met"},
		"a rate, missed":             {Row{Unit: MBPerSecond, Target: Target{Times: 5}, Ours: samples(40), Peer: samples(10)}, 4, "missed"},
		"a rate, median":             {Row{Unit: EventsPerS, Target: Target{Times: 5}, Ours: samples(1, 60, 70), Peer: samples(10)}, 6, "met"},
		"less is better":             {Row{Unit: Seconds, Target: Target{AtMost: 2}, Ours: samples(1), Peer: samples(4)}, 4, "met"},
		"better than peer, too much": {Row{Unit: Megabytes, Target: Target{AtMost: 40}, Ours: samples(41), Peer: samples(410)}, 10, "missed"},
		"enough":                     {Row{Unit: PerSecond, Target: Target{AtLeast: 10}, Ours: samples(10)}, 0, "met"},
		"too little":                 {Row{Unit: PerSecond, Target: Target{AtLeast: 10}, Ours: samples(9)}, 0, "missed"},
		"no target":                  {Row{Unit: PerSecond, Ours: samples(1), Peer: samples(2)}, 0.5, ""},
		"no peer":                    {Row{Unit: PerSecond, Target: Target{Times: 5}, Ours: samples(1)}, 0, ""},
		"no peer, absolute":          {Row{Unit: Seconds, Target: Target{AtMost: 2}, Ours: samples(3)}, 0, "missed"},
		"no sample of ours":          {Row{Unit: Seconds, Target: Target{AtMost: 2}, Peer: samples(3)}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.row.Ratio(); got != c.ratio {
				t.Errorf("the ratio is %v, want %v", got, c.ratio)
			}
			if got := c.row.Verdict(); got != c.verdict {
				t.Errorf("the verdict is %q, want %q", got, c.verdict)
			}
		})
	}
}

func TestNumbersAreReadable(t *testing.T) {
	seconds, rate := Row{Unit: Seconds}, Row{Unit: PerSecond}
	for got, want := range map[string]string{
		seconds.format(0.0524):                  "0.052 s",
		seconds.format(3.204):                   "3.20 s",
		rate.format(1234567.4):                  "1,234,567 /s",
		rate.format(999.6):                      "1,000 /s",
		rate.format(7.25):                       "7.2 /s",
		rate.format(0):                          "",
		Row{Unit: MBPerSecond}.format(123):      "123 MB/s",
		micros(3.14):                            "3.1 µs",
		micros(44.4):                            "44 µs",
		micros(1500):                            "1.5 ms",
		micros(23_400):                          "23 ms",
		times(5.04):                             "5.0x",
		times(1234):                             "1,234x",
		Row{Target: Target{Times: 10}}.target(): ">= 10x",
		Row{Unit: Megabytes, Target: Target{AtMost: 40}}.target():    "<= 40 MB",
		Row{Unit: PerSecond, Target: Target{AtLeast: 1000}}.target(): ">= 1,000 /s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// twoRows is a row without load and one with.
func twoRows() []Row {
	load := func(value float64) Sample {
		return Sample{Value: value, Work: value, Server: time.Second, Generator: 100 * time.Millisecond, Others: 0.05}
	}
	return []Row{
		{Name: "start", Unit: Seconds, Target: Target{AtMost: 0.15}, Ours: samples(0.1, 0.05, 0.2), Peer: samples(3, 4)},
		{Name: "list", Unit: MBPerSecond, Target: Target{Times: 10}, Ours: []Sample{load(1000)}, Peer: []Sample{load(125)}},
	}
}

func drained() Row {
	return Row{Name: "drain", Unit: Seconds, Ours: []Sample{{
		Value: 2, Work: 1000, Server: time.Second, Generator: 100 * time.Millisecond, Others: 0.05, Memory: 80, Peak: 120, Disk: 300,
	}}}
}

func TestTables(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"results": {Results(twoRows(), "the peer"), `
| figure |   Evenkeel | the peer | ratio |     target |        |
|--------|-----------:|---------:|------:|-----------:|-------:|
| start  |    0.100 s |   3.50 s |   35x | <= 0.150 s |    met |
| list   | 1,000 MB/s | 125 MB/s |  8.0x |     >= 10x | missed |
`},
		"costs": {Costs(twoRows()), `
| CPU time per | Evenkeel | generator | others |   peer | generator | others | server ratio |
|--------------|---------:|----------:|-------:|-------:|----------:|-------:|-------------:|
| MB: list     |   1.0 ms |    100 µs |    5 % | 8.0 ms |    800 µs |    5 % |         8.0x |
`},
		"spreads": {Spreads(twoRows(), "the peer"), `
| lowest to highest |            Evenkeel | of runs |        the peer | of runs |
|-------------------|--------------------:|--------:|----------------:|--------:|
| start             |    0.050 to 0.200 s |  3 of 3 |  3.00 to 4.00 s |  2 of 2 |
| list              | 1,000 to 1,000 MB/s |  1 of 1 | 125 to 125 MB/s |  1 of 1 |
`},
		"no peer": {Alone(twoRows()), `
| figure |     median |   lowest to highest | of runs |     target |        |
|--------|-----------:|--------------------:|--------:|-----------:|-------:|
| start  |    0.100 s |    0.050 to 0.200 s |  3 of 3 | <= 0.150 s |    met |
| list   | 1,000 MB/s | 1,000 to 1,000 MB/s |  1 of 1 |     >= 10x | missed |
`},
		"steps": {Steps([]Row{drained()}, "pod"), `
| step  |   time | pod/s |    CPU | cores busy | CPU per pod | memory after |   most | data after | generator | others |
|-------|-------:|------:|-------:|-----------:|------------:|-------------:|-------:|-----------:|----------:|-------:|
| drain | 2.00 s |   500 | 1.00 s |       0.50 |      1.0 ms |        80 MB | 120 MB |     300 MB |    100 µs |    5 % |
`},
		"a side that was not measured": {Costs([]Row{{Name: "get", Unit: PerSecond, Ours: twoRows()[1].Ours}}), `
| CPU time per | Evenkeel | generator | others | peer | generator | others | server ratio |
|--------------|---------:|----------:|-------:|-----:|----------:|-------:|-------------:|
| request: get |   1.0 ms |    100 µs |    5 % |      |           |        |              |
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want[1:], c.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShowOfOneSample(t *testing.T) {
	rows := twoRows()
	if got, want := rows[0].Show(rows[0].Ours[0]), "0.100 s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	sample := rows[1].Ours[0]
	if got, want := rows[1].Show(sample), "1,000 MB/s; CPU: server 1.0 ms, generator 100 µs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	sample.Others = 0.5
	if got, want := rows[1].Show(sample), "1,000 MB/s; CPU: server 1.0 ms, generator 100 µs; disturbed, others took 50 %"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDisturbedSamplesDoNotCount(t *testing.T) {
	disturbed := func(v float64) Sample { return Sample{Value: v, Others: 0.5} }
	for name, c := range map[string]struct {
		samples []Sample
		median  float64
		spread  []string
	}{
		"none are":  {samples(1, 2, 6), 2, []string{"1.0 to 6.0 /s", "3 of 3"}},
		"some are":  {append(samples(4, 6), disturbed(1), disturbed(1)), 5, []string{"4.0 to 6.0 /s", "2 of 4"}},
		"every one": {[]Sample{disturbed(1), disturbed(3)}, 2, []string{"1.0 to 3.0 /s", "2 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := medianOf(c.samples, value); got != c.median {
				t.Errorf("the median is %v, want %v", got, c.median)
			}
			if diff := cmp.Diff(c.spread, Row{Unit: PerSecond}.spread(c.samples)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
