// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/lab/armemu"
)

// The leader reads each region once after its start, then once an hour. A region that cannot be read has no usages and is
// logged once.
func TestRegionQuotasAreReadHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var reads []string
		var mu sync.Mutex // guards the log, reads and refused
		refused := map[string]bool{}
		setRefused := func(region string, ok bool) {
			mu.Lock()
			defer mu.Unlock()
			refused[region] = ok
		}
		q := &regionQuotas{
			regions: func() []string { return []string{"eastus", "westus"} }, log: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil)),
			read: func(_ context.Context, region string) ([]plan.RegionUsage, error) {
				mu.Lock()
				defer mu.Unlock()
				reads = append(reads, region)
				if refused[region] {
					return nil, errors.New("403 AuthorizationFailed")
				}
				return []plan.RegionUsage{{Name: "LoadBalancers", Used: len(reads), Max: 10}}, nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.Run(ctx)
		}()
		expect := func(about string, wantReads, wantLogs int, usages ...plan.LimitUsage) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := q.ListUsages(); len(reads) != wantReads || !slices.Equal(got, usages) || strings.Count(log.String(), "\n") != wantLogs {
				t.Errorf("%s: %d reads, want %d; usages %+v, want %+v; want %d logs:\n%s", about, len(reads), wantReads, got, usages, wantLogs, log.String())
			}
		}
		usage := func(region string, used int) plan.LimitUsage {
			return plan.LimitUsage{Resource: "region " + region, Name: "load balancers", Was: used, Used: used, Max: 10}
		}
		time.Sleep(quotaDelay - time.Second)
		expect("before the load balancers are known", 0, 0)
		time.Sleep(quotaDelay)
		expect("after the start", 2, 0, usage("eastus", 1), usage("westus", 2))
		setRefused("westus", true)
		time.Sleep(quotaInterval - quotaDelay)
		expect("within the hour", 2, 0, usage("eastus", 1), usage("westus", 2))
		time.Sleep(quotaInterval / 8)
		expect("without the right in a region", 4, 1, usage("eastus", 3))
		time.Sleep(quotaInterval * 9 / 8)
		expect("still without it", 6, 1, usage("eastus", 5))
		setRefused("westus", false)
		time.Sleep(quotaInterval * 9 / 8)
		expect("with the right", 8, 1, usage("eastus", 7), usage("westus", 8))
		if !strings.Contains(log.String(), UsagesAction) || !strings.Contains(log.String(), "region=westus") {
			t.Error(log.String())
		}
		cancel()
		<-done
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(text)
}

// A plan warns if it creates more than a quota of the region permits, with one read, and notes that it cannot know.
func TestPlansOfRegionQuotas(t *testing.T) {
	web, api := fmt.Sprintf(someService, "web", ""), fmt.Sprintf(someService, "api", "")
	denied := &armemu.Role{Actions: []string{"*"}, NotActions: []string{UsagesAction}}
	for _, tt := range []struct {
		about, objects string
		opts           armemu.Options
		want           string
		reads          int
	}{
		{"one of two", web, armemu.Options{MaxStandardIPs: 2}, "", 1},
		{"two of two", web + "\n---\n" + api, armemu.Options{MaxStandardIPs: 2}, "! region eastus would have 2 of 2 Standard public IPv4 addresses.", 1},
		{"two of one", web + "\n---\n" + api, armemu.Options{MaxStandardIPs: 1}, "! region eastus would have 2 of 1 Standard public IPv4 addresses.", 1},
		{"the right is missing", web, armemu.Options{MaxStandardIPs: 1, Role: denied}, "Note: the quotas of region eastus are not known", 1},
		{"nothing is created", "", armemu.Options{MaxStandardIPs: 1, Role: denied}, "", 0},
	} {
		t.Run(tt.about, func(t *testing.T) {
			c := withNetwork(t, newCloudWith(t, tt.opts, nil))
			p, err := c.plan(t, planned+"azure.json", tt.objects)
			if err != nil {
				t.Fatal(err)
			}
			text := p.FormatText(false)
			if !strings.Contains(text, tt.want) || tt.want == "" && strings.Contains(text, "region eastus") {
				t.Errorf("want %q:\n%s", tt.want, text)
			}
			if reads := c.Calls(func(call armemu.Call) bool { return strings.HasSuffix(call.Path, "/usages") }); len(reads) != tt.reads {
				t.Errorf("%d reads, want %d", len(reads), tt.reads)
			}
		})
	}
}
