// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/lead"
)

type oneLease struct {
	resourcelock.Interface

	is     resourcelock.LeaderElectionRecord
	fail   error
	takes  time.Duration
	now    *time.Duration
	events []string
}

func (o *oneLease) Identity() string      { return "me" }
func (o *oneLease) Describe() string      { return "weir-system/weir-controller" }
func (o *oneLease) RecordEvent(is string) { o.events = append(o.events, is) }

func (o *oneLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	is := o.is
	return &is, nil, o.fail
}

func (o *oneLease) Update(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	if o.fail == nil {
		o.is = next
	}
	*o.now += o.takes
	return o.fail
}

func candidate() (*leaderLock, *oneLease) {
	now := new(time.Duration)
	api := &oneLease{now: now}
	return &leaderLock{
		Interface: api, fence: lead.NewFence(10*time.Second, func() time.Duration { return *now }),
		onAcquired: func(context.Context) error { return nil },
	}, api
}

var acquired = metav1.Unix(1e9, 0)

func (l *leaderLock) renews(transitions int) error {
	return l.Update(context.Background(), resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaderTransitions: transitions, AcquireTime: acquired})
}

func (l *leaderLock) releases() error {
	_, _, _ = l.Get(context.Background()) // as the elector does; it may fail
	return l.Update(context.Background(), resourcelock.LeaderElectionRecord{})
}

// A renewal counts from the time before its request.
func TestTheFenceHearsOfRenewals(t *testing.T) {
	l, api := candidate()
	if l.fence.CheckWrite() == nil {
		t.Error("it writes before it leads")
	}
	api.takes = 3 * time.Second
	if err := l.renews(4); err != nil || l.fence.CheckWrite() != nil {
		t.Fatal(err, l.fence.CheckWrite())
	}
	if in, _ := l.fence.Epoch(); in.String() != "weir-system/weir-controller 4" {
		t.Errorf("it leads in %v", in)
	}
	api.fail = errAPI
	*api.now += 7 * time.Second
	if err := l.renews(4); err == nil || l.fence.CheckWrite() == nil {
		t.Error("it writes 13 s after the last renewal was asked for")
	}
	api.fail = nil
	if err := l.renews(4); !errors.Is(err, l.fence.EndReason()) {
		t.Errorf("a lead that is over is renewed: %v", err)
	}
}

// A process that finds another leader writes nothing more, and does not release that leader's
// lease.
func TestTheLeaseOfAnotherIsNotGivenBack(t *testing.T) {
	l, api := candidate()
	if err := l.renews(4); err != nil {
		t.Fatal(err)
	}
	api.is.HolderIdentity = "another"
	if err := l.releases(); err == nil || api.is.HolderIdentity != "another" {
		t.Errorf("%v: the lease is %q's", err, api.is.HolderIdentity)
	}
	l.RecordEvent("stopped leading")
	if l.fence.CheckWrite() == nil || len(api.events) > 0 {
		t.Errorf("it writes on: %v", api.events)
	}
}

// first runs before the elector learns of the acquisition, until it succeeds, and once.
func TestALeadBeginsWithWhatIsFirst(t *testing.T) {
	l, _ := candidate()
	tries, fails := 0, errAPI
	l.onAcquired = func(context.Context) error {
		if tries++; l.fence.CheckWrite() != nil {
			t.Error("it may not write")
		}
		return fails
	}
	if err := l.renews(4); !errors.Is(err, errAPI) {
		t.Errorf("it leads: %v", err)
	}
	fails = nil
	for range 3 {
		if err := l.renews(4); err != nil {
			t.Error(err)
		}
	}
	if tries != 2 {
		t.Errorf("it was tried %d times", tries)
	}
}

func TestALeadThatIsGivenBackIsOver(t *testing.T) {
	l, api := candidate()
	if err := l.renews(4); err != nil {
		t.Fatal(err)
	}
	if err := l.releases(); err != nil || api.is.HolderIdentity != "" || l.fence.CheckWrite() == nil {
		t.Errorf("%v, held by %q, may write: %v", err, api.is.HolderIdentity, l.fence.CheckWrite())
	}
	l.RecordEvent("stopped leading")
	if len(api.events) != 1 {
		t.Error("nobody is told of an end in good order")
	}
}

type wireSeen struct{ seen []string }

func (w *wireSeen) RoundTrip(req *http.Request) (*http.Response, error) {
	text := ""
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text = " " + string(body)
	}
	w.seen = append(w.seen, req.Method+text)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// Requests that change something check the fence; reads and access reviews do not.
func TestWhatPassesTheFence(t *testing.T) {
	for _, tt := range []struct {
		method, path  string
		leads, passes bool
	}{
		{http.MethodGet, "/api/v1/nodes", false, true},
		{http.MethodPut, "/api/v1/nodes/n", false, false},
		{http.MethodPost, "/api/v1/namespaces/a/events", false, false},
		{http.MethodPatch, "/apis/weir.dev/v1alpha1/namespaces/a/backendpools/b/status", false, false},
		{http.MethodDelete, "/apis/weir.dev/v1alpha1/namespaces/a/backendpools/b", false, false},
		{http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", false, true},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", false, true},
		{http.MethodPut, "/api/v1/nodes/n", true, true},
	} {
		l, _ := candidate()
		if tt.leads {
			if err := l.renews(1); err != nil {
				t.Fatal(err)
			}
		}
		wire := &wireSeen{}
		cfg := WithFence(&rest.Config{Host: "http://127.0.0.1:1", Transport: wire}, l.fence)
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://127.0.0.1:1"+tt.path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		if passed := len(wire.seen) == 1; passed != tt.passes || !passed && !errors.Is(err, lead.ErrNotLeader) {
			t.Errorf("%s %s: passed %t, %v", tt.method, tt.path, passed, err)
		}
	}
}

// A request body is not sent after the leadership has ended.
func TestWhatIsLeftOfARequestAsksAgain(t *testing.T) {
	l, _ := candidate()
	if err := l.renews(1); err != nil {
		t.Fatal(err)
	}
	wire := &wireSeen{}
	late := roundTripper(func(req *http.Request) (*http.Response, error) { // after connecting
		l.fence.EndTerm(errAPI)
		return wire.RoundTrip(req)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1:1/", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&fenceTransport{late, l.fence}).RoundTrip(req)
	if err == nil {
		_ = res.Body.Close()
	}
	if !errors.Is(err, lead.ErrNotLeader) || len(wire.seen) > 0 {
		t.Errorf("%v: %v left", err, wire.seen)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestAnElectionThatIsNone(t *testing.T) {
	if err := DefaultElection().Validate(); err != nil {
		t.Error(err)
	}
}

var errAPI = errors.New("the API server is away")

// A current leader, an expired Lease and a missing one are distinguished.
func TestWhoLeads(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := func(name, holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)}},
		}
	}
	for _, tt := range []struct {
		about string
		has   *coordinationv1.Lease
		want  LeaderStatus
	}{
		{"held", lease("weir", "weir-0", time.Second), LeaderStatus{Holder: "weir-0", Namespace: "weir-system", RenewTime: now.Add(-time.Second)}},
		{"run out", lease("weir", "weir-0", 15*time.Second), LeaderStatus{PreviousHolder: "weir-0", Namespace: "weir-system", RenewTime: now.Add(-15 * time.Second)}},
		{"given back", lease("weir", "", time.Second), LeaderStatus{Namespace: "weir-system", RenewTime: now.Add(-time.Second)}},
		{"of somebody else", lease("other", "other-0", time.Second), LeaderStatus{}},
	} {
		api := fake.NewClientBuilder().WithObjects(tt.has).Build()
		is, err := FindLeader(t.Context(), api, "weir", now)
		if is.RenewTime = is.RenewTime.UTC(); is != tt.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", tt.about, is, err, tt.want)
		}
	}
}
