// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNormalize(t *testing.T) {
	for _, tt := range []struct {
		zones, want string
		valid       bool
	}{
		{"", "", true}, {"1", "1", true}, {"3 1 2", "1 2 3", true},
		{"1 1", "", false}, {"0", "", false}, {"10", "", false}, {"a", "", false}, {"1 2,3", "", false},
	} {
		got, valid := Normalize(strings.Fields(tt.zones))
		if valid != tt.valid || valid && strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %v, %t", tt.zones, got, valid)
		}
	}
}

// The first choice that is set decides; a zone that the region does not have is an error that names the setting.
func TestPick(t *testing.T) {
	three, none, unknown := Region{Location: "eastus", Known: true, Zones: []string{"1", "2", "3"}}, Region{Location: "westus", Known: true}, Region{Location: "eastus"}
	annotation := Choice{true, []string{"2"}, "annotation a"}
	key, off, wrong := Choice{true, []string{"1", "3"}, "key"}, Choice{true, nil, "key"}, Choice{true, []string{"1", "4"}, "key"}
	for about, tt := range map[string]struct {
		region   Region
		choices  []Choice
		want     string
		wantText string
	}{
		"all":                         {three, []Choice{{}, {}}, "1 2 3", ""},
		"those of azure.json":         {three, []Choice{{}, key}, "1 3", ""},
		"none by azure.json":          {three, []Choice{{}, off}, "", ""},
		"the annotation first":        {three, []Choice{annotation, off}, "2", ""},
		"no such zone":                {three, []Choice{{}, wrong}, "", "key names zone 4, and region eastus has zones 1, 2, 3: correct it"},
		"the annotation hides it":     {three, []Choice{annotation, wrong}, "2", ""},
		"a region without zones":      {none, []Choice{{}, {}}, "", ""},
		"zones where there are none":  {none, []Choice{annotation}, "", "annotation a names zone 2, and region westus has no zones: correct it"},
		"an unknown region":           {unknown, []Choice{{}, {}}, "", ""},
		"named for an unknown region": {unknown, []Choice{{}, wrong}, "1 4", ""},
	} {
		got, err := tt.region.Pick(tt.choices...)
		if strings.Join(got, " ") != tt.want || (err == nil) != (tt.wantText == "") || err != nil && err.Error() != tt.wantText {
			t.Errorf("%s: %v, %v", about, got, err)
		}
	}
}

// Zones that exist cannot change. Azure makes what has two zones redundant in all.
func TestCheckExisting(t *testing.T) {
	for _, tt := range []struct {
		choice   Choice
		existing string
		wantText string
	}{
		{Choice{}, "1", ""},
		{Choice{IsSet: true, Zones: []string{"1"}}, "1", ""},
		{Choice{IsSet: true, Zones: []string{"1", "2"}}, "3 1 2", ""},
		{Choice{IsSet: true, Zones: []string{"1", "2"}, Source: "annotation a"}, "2", "frontend x has zone 2, and annotation a requests zones 1, 2. Azure cannot change that"},
		{Choice{IsSet: true, Zones: []string{"1"}, Source: "annotation a"}, "3 2 1", "frontend x has zones 1, 2, 3, and annotation a requests zone 1."},
		{Choice{IsSet: true, Zones: []string{"1"}, Source: "annotation a"}, "", "frontend x has no zones"},
	} {
		err := tt.choice.CheckExisting("frontend x", strings.Fields(tt.existing))
		if (err == nil) != (tt.wantText == "") || err != nil && !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%+v, %s: %v", tt.choice, tt.existing, err)
		}
	}
}

// The regions are read once, when they are needed. A failure leaves the zones unknown, is logged once, and is tried
// again after a delay.
func TestRegionsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reads, fails := 0, true
		regions := NewRegions(func(context.Context) (map[string][]string, error) {
			if reads++; fails {
				return nil, fmt.Errorf("%w: 403 AuthorizationFailed", ErrRejected)
			}
			return map[string][]string{"eastus2": {"1", "2", "3"}, "westus": nil}, nil
		}, slog.New(slog.NewTextHandler(&log, nil)))
		expect := func(location string, known bool, zones string, after int) {
			t.Helper()
			got := regions.Region(t.Context(), location)
			if got.Known != known || strings.Join(got.Zones, " ") != zones || reads != after {
				t.Errorf("%+v after %d reads, want %s after %d", got, reads, zones, after)
			}
		}
		expect("", false, "", 0)
		expect("eastus2", false, "", 1)
		expect("eastus2", false, "", 1)
		if regions.Err() == nil {
			t.Error("a failure is not shown")
		}
		time.Sleep(retryDelay)
		expect("eastus2", false, "", 2)
		fails = false
		expect("eastus2", false, "", 2)
		time.Sleep(retryDelay)
		expect("East US 2", true, "1 2 3", 3)
		time.Sleep(24 * time.Hour)
		expect("westus", true, "", 3)
		expect("mars", false, "", 3)
		if regions.Err() != nil || strings.Count(log.String(), "zones of the region are not known") != 1 {
			t.Errorf("%v; %s", regions.Err(), log.String())
		}
	})
}

// What is new waits for a minute while the zones cannot be read, unless a setting names them.
func TestOutageOfRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reads := 0
		regions := NewRegions(func(context.Context) (map[string][]string, error) {
			reads++
			return nil, errors.New("503 ServiceUnavailable")
		}, slog.New(slog.NewTextHandler(&log, nil)))
		for range 6 {
			_, err := regions.Region(t.Context(), "eastus").Pick()
			if _, waits := errors.AsType[*OutageError](err); !waits {
				t.Fatalf("after %d reads: %v", reads, err)
			}
			if picked, err := regions.Region(t.Context(), "eastus").Pick(Choice{IsSet: true, Zones: []string{"2"}}); err != nil || len(picked) != 1 {
				t.Fatalf("%v, %v", picked, err)
			}
			time.Sleep(outageDelay)
		}
		for range 3 {
			if picked, err := regions.Region(t.Context(), "eastus").Pick(); err != nil || len(picked) > 0 {
				t.Fatalf("after a minute: %v, %v", picked, err)
			}
			time.Sleep(retryDelay)
		}
		if reads != 8 || strings.Count(log.String(), "zones of the region are not known") != 1 {
			t.Errorf("%d reads; %s", reads, log.String())
		}
	})
}

// A read that the caller cancels is no failure; another caller does not wait for ever.
func TestCanceledRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		regions := NewRegions(func(ctx context.Context) (map[string][]string, error) {
			reads++
			<-ctx.Done()
			return nil, ctx.Err()
		}, slog.New(slog.DiscardHandler))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go regions.Region(t.Context(), "eastus")
		synctest.Wait()
		start := time.Now()
		if regions.Region(short, "eastus").Known || time.Since(start) != time.Second {
			t.Errorf("it waited %s", time.Since(start))
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		if regions.Err() == nil || reads != 1 {
			t.Errorf("%v after %d reads", regions.Err(), reads)
		}
		canceled, stop := context.WithCancel(t.Context())
		stop()
		time.Sleep(retryDelay)
		if regions.Region(canceled, "eastus"); !errors.Is(regions.Err(), context.DeadlineExceeded) {
			t.Errorf("%v", regions.Err())
		}
	})
}

func TestNoRegions(t *testing.T) {
	var none *Regions
	if got := none.Region(t.Context(), "eastus"); got.Known || got.Zones != nil || none.Err() != nil {
		t.Errorf("%+v, %v", got, none.Err())
	}
}

// What could not be read because its caller gave up is an outage, too: zones cannot be added later.
func TestZonesThatWereNotRead(t *testing.T) {
	r := NewRegions(func(ctx context.Context) (map[string][]string, error) { return nil, ctx.Err() }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for about, region := range map[string]Region{"a read that ends early": r.Region(ctx, "eastus"), "no read": r.CachedRegion("eastus")} {
		if _, err := region.Pick(Choice{}); err == nil || !r.NeedsRead() {
			t.Errorf("%s: %v, needs a read: %t", about, err, r.NeedsRead())
		}
	}
}
