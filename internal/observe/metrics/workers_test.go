// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// lane runs a real updater for one pool against a scripted Azure, with the controller's metrics.
type lane struct {
	*metrics.PoolUpdates
	reg   *prometheus.Registry
	lanes *updater.Workers
	// answers are the next write results; a zero one succeeds.
	answers []armerror.Failure
	missing bool
	shut    time.Time // gates are closed until then
	holds   []lb.Address
	wants   []lb.Address
	writes  int
}

var service = schedule.ServiceName{Namespace: "shop", Name: "web"}

func inLane(t *testing.T, maxRetries int, explanation func(l *lane)) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		l := &lane{PoolUpdates: metrics.NewPoolUpdates(reg, pool.LoadBalancer), reg: reg}
		l.lanes = updater.New(updater.Config{
			Interval: 30 * time.Second, MaxRetries: maxRetries, AdminState: true,
			Azure: l, Cluster: l, StatusStore: l, Reporter: l, Log: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { l.lanes.Run(ctx); close(ended) }()
		explanation(l)
		stop()
		<-ended
	})
}

// changes changes the desired membership, or an admin state.
func (l *lane) changes(admin bool, wants ...lb.Address) {
	l.wants = wants
	op := schedule.Operation{Ref: schedule.Ref{Name: "web", UID: "u"}, Pool: pool, Service: service, ChangedAt: time.Now(), Admin: admin}
	l.lanes.Add(op)
}

func (l *lane) waits(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// scraped returns the series with these prefixes, as Prometheus scrapes them.
func (l *lane) scraped(t *testing.T, prefixes ...string) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(l.reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) && !strings.Contains(line, "_bucket{") {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (l *lane) GetPool(context.Context, lb.PoolID) (lb.Pool, error) {
	if l.missing {
		return lb.Pool{}, armerror.Classify(armerror.Failure{Status: 404, Codes: []string{"NotFound"}, TargetMissing: true}, errors.New("gone"))
	}
	return lb.Pool{ID: pool, Etag: fmt.Sprint(l.writes), Addresses: slices.Clone(l.holds)}, nil
}

func (l *lane) PutPool(_ context.Context, p lb.Pool) (lb.Pool, error) {
	time.Sleep(2 * time.Second)
	l.writes++
	if len(l.answers) > 0 {
		answer := l.answers[0]
		l.answers = l.answers[1:]
		if answer.Status != 0 || answer.GateClosed {
			return lb.Pool{}, armerror.Classify(answer, errors.New("no"))
		}
	}
	l.holds = p.Addresses
	return l.GetPool(context.Background(), p.ID)
}

func (*lane) ResolveMachines(_ context.Context, p lb.Pool) (lb.Pool, error) { return p, nil }

func (l *lane) Enter(lb.LoadBalancerID) (time.Time, string) {
	if l.shut.After(time.Now()) {
		return l.shut, "writes are closed"
	}
	return time.Time{}, ""
}

func (*lane) IsNeeded(schedule.Operation) bool { return true }
func (l *lane) DesiredPool(schedule.Ref) (diff.Desired, error) {
	var addresses []netip.Addr
	for _, a := range l.holds {
		addresses = append(addresses, a.IP)
	}
	return diff.Desired{
		Addresses: l.wants, IsOwnAddress: func(netip.Addr) bool { return true },
		Record: diff.Record{Written: addresses, Adopted: true},
	}, nil
}
func (*lane) Record(context.Context, schedule.Ref, diff.Intent) error { return nil }

func (l *lane) Report(_ context.Context, r updater.Report) { l.PoolUpdates.Report(r) }

var (
	n1       = lb.Address{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}
	n1Down   = lb.Address{Name: "n1", IP: n1.IP, AdminState: lb.Down}
	conflict = armerror.Failure{Status: 409, Codes: []string{"AnotherOperationInProgress"}}
	refused  = armerror.Failure{Status: 400, Codes: []string{"InvalidRequestFormat"}}
)

const (
	ofMembers = `{request="services_local_update_backend_pool",resource_group="rg-shop",source="local_service_backend_pool_updater",subscription_id="sub"} `
	ofAdmin   = `{request="loadbalancer_adminstate_update_backend_pool",resource_group="rg-shop",source="admin_state_controller",subscription_id="sub"} `
)

// Each final event of a Service is one observation; retries, waits and deleted objects are none.
func TestWhatALaneDoesIsScraped(t *testing.T) {
	for _, tt := range []struct {
		name    string
		retries int
		meets   []armerror.Failure
		missing bool
		// ends and seconds are the count and sum of observations, failures the failed ones; retried is the
		// series of retries.
		ends, seconds, failures int
		retried                 string
	}{
		{"written at once", 3, nil, false, 1, 2, 0, ""},
		{"retried, then written", 3, []armerror.Failure{conflict, conflict}, false, 1, 2, 0, `weir_pool_retries_total{reason="conflict"} 2`},
		{"out of retries", 1, []armerror.Failure{conflict, conflict}, false, 1, 2, 1, `weir_pool_retries_total{reason="conflict"} 1`},
		{"no retries", 0, []armerror.Failure{conflict}, false, 1, 2, 1, ""},
		{"refused", 3, []armerror.Failure{refused}, false, 1, 2, 1, ""},
		{"gone", 3, nil, true, 0, 0, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLane(t, tt.retries, func(l *lane) {
				l.answers, l.missing = tt.meets, tt.missing
				l.changes(false, n1)
				l.waits(5 * time.Minute)
				var want []string
				if tt.ends > 0 {
					want = append(want, "cloudprovider_azure_op_duration_seconds_count"+ofMembers+fmt.Sprint(tt.ends), "cloudprovider_azure_op_duration_seconds_sum"+ofMembers+fmt.Sprint(tt.seconds))
				}
				want = append(want, "cloudprovider_azure_op_failure_count"+ofMembers+fmt.Sprint(tt.failures))
				if tt.retried != "" {
					want = append(want, tt.retried)
				}
				if got := l.scraped(t, "cloudprovider_azure_op", "weir_pool_retries_total"); got != strings.Join(want, "\n") {
					t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
				}
			})
		})
	}
}

// Throttled and locally delayed changes of admin states are counted like in cloud-provider-azure.
func TestThrottlingOfAdminStatesIsScraped(t *testing.T) {
	throttled := armerror.Failure{Status: 429, Codes: []string{"TooManyRequests"}}
	for _, tt := range []struct {
		name              string
		meets             []armerror.Failure
		shut              time.Duration
		throttled, limits int
	}{
		{"at once", nil, 0, 0, 0},
		{"Azure throttles twice", []armerror.Failure{throttled, throttled}, 0, 2, 0},
		{"a gate closes under way", []armerror.Failure{{GateClosed: true}}, 0, 0, 1},
		{"a closed gate holds it back", nil, time.Minute, 0, 1},
		{"it fails otherwise", []armerror.Failure{refused}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLane(t, 3, func(l *lane) {
				l.holds, l.answers, l.shut = []lb.Address{n1}, tt.meets, time.Now().Add(tt.shut)
				l.changes(true, n1Down)
				l.waits(5 * time.Minute)
				want := fmt.Sprintf("cloudprovider_azure_api_request_ratelimited_count%s%d\ncloudprovider_azure_api_request_throttled_count%s%d", ofAdmin, tt.limits, ofAdmin, tt.throttled)
				if got := l.scraped(t, "cloudprovider_azure_api"); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				if len(l.holds) != 1 || l.holds[0].AdminState != lb.Down {
					t.Errorf("the pool holds %v", l.holds)
				}
			})
		})
	}
}

// Delayed membership changes do not count in the series of admin states.
func TestAWaitForTheMembersCountsNothing(t *testing.T) {
	inLane(t, 3, func(l *lane) {
		l.shut = time.Now().Add(time.Minute)
		l.changes(false, n1)
		l.waits(5 * time.Minute)
		if got := l.scraped(t, "cloudprovider_azure_api"); got != "" {
			t.Error(got)
		}
	})
}
