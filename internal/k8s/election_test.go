// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/leader"
)

type oneLease struct {
	resourcelock.Interface

	is     resourcelock.LeaderElectionRecord
	fail   error
	takes  time.Duration
	now    *time.Duration
	events []string
}

func (o *oneLease) Identity() string       { return "me" }
func (o *oneLease) Describe() string       { return "weir-system/weir-controller" }
func (o *oneLease) RecordEvent(got string) { o.events = append(o.events, got) }

func (o *oneLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	got := o.is
	raw, err := json.Marshal(got)
	return &got, raw, errors.Join(o.fail, err)
}

func (o *oneLease) Update(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	if o.fail == nil {
		o.is = next
	}
	*o.now += o.takes
	return o.fail
}

func candidate() (*leaderLock, *oneLease) {
	current := new(time.Duration)
	api := &oneLease{now: current}
	return &leaderLock{
		Interface: api, fence: leader.NewFence(10*time.Second, func() time.Duration { return *current }),
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
func TestFenceReceivesRenewals(t *testing.T) {
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
func TestFencedRequests(t *testing.T) {
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
		if passed := len(wire.seen) == 1; passed != tt.passes || !passed && !errors.Is(err, leader.ErrNotLeader) {
			t.Errorf("%s %s: passed %t, %v", tt.method, tt.path, passed, err)
		}
	}
}

// A request body is not sent after the leadership has ended.
func TestBodyIsNotSentAfterLeadershipLoss(t *testing.T) {
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
	if !errors.Is(err, leader.ErrNotLeader) || len(wire.seen) > 0 {
		t.Errorf("%v: %v left", err, wire.seen)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

func TestAnElectionThatIsNone(t *testing.T) {
	if err := DefaultElection().Validate(); err != nil {
		t.Error(err)
	}
}

var errAPI = errors.New("the API server is away")

// A current leader, an expired Lease and a missing one are distinguished.
func TestElectedLeader(t *testing.T) {
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
		{"of another owner", lease("other", "other-0", time.Second), LeaderStatus{}},
	} {
		api := fake.NewClientBuilder().WithObjects(tt.has).Build()
		leader, err := FindLeader(t.Context(), api, "weir", now)
		if leader.RenewTime = leader.RenewTime.UTC(); !reflect.DeepEqual(leader, tt.want) || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", tt.about, leader, err, tt.want)
		}
	}
}

// A Lease that is held in another namespace is a rival; one that has run out is not. Version and class are those of the
// annotations.
func TestRivals(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lease := func(namespace string, renewed time.Duration, annotations map[string]string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weir", Annotations: annotations},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("weir-of-" + namespace), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)}},
		}
	}
	api := fake.NewClientBuilder().WithObjects(
		lease("a", time.Second, map[string]string{VersionAnnotation: "v1", ClassAnnotation: ""}), lease("b", time.Minute, nil), lease("c", time.Second, nil),
	).Build()
	leader, err := FindLeader(t.Context(), api, "weir", now)
	if err != nil || leader.Holder != "weir-of-a" || leader.Version != "v1" || leader.Class == nil || *leader.Class != "" || len(leader.Rivals) != 1 || leader.Rivals[0].Holder != "weir-of-c" || leader.Rivals[0].Class != nil {
		t.Errorf("%+v, %v", leader, err)
	}
}

// recorder is a Lease client that keeps what it is sent.
type recorder struct {
	coordinationclient.LeaseInterface

	sent []*coordinationv1.Lease
}

func (r *recorder) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	r.sent = append(r.sent, l)
	return l, nil
}

func (r *recorder) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	r.sent = append(r.sent, l)
	return l, nil
}

// Each write of a Lease has the annotations of its holder, and keeps others.
func TestAnnotationsOfALease(t *testing.T) {
	sent := &recorder{}
	l := annotatedLease{sent, map[string]string{VersionAnnotation: "v2"}}
	old := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{VersionAnnotation: "v1", "theirs": "x"}}}
	_, created := l.Create(t.Context(), &coordinationv1.Lease{}, metav1.CreateOptions{})
	_, updated := l.Update(t.Context(), old, metav1.UpdateOptions{})
	if err := errors.Join(created, updated); err != nil {
		t.Fatal(err)
	}
	if a, b := sent.sent[0].Annotations, sent.sent[1].Annotations; a[VersionAnnotation] != "v2" || b[VersionAnnotation] != "v2" || b["theirs"] != "x" || old.Annotations[VersionAnnotation] != "v1" {
		t.Errorf("%v, %v", a, b)
	}
}

// A standby notices renewals by what it reads anyway. A Lease that does not change, or cannot be read, is not renewed.
func TestAStandbySeesRenewals(t *testing.T) {
	l, api := candidate()
	api.is = resourcelock.LeaderElectionRecord{HolderIdentity: "other", RenewTime: acquired}
	for i, renew := range []bool{true, true, false, false, true} {
		*api.now += time.Minute
		if renew {
			api.is.RenewTime = metav1.NewTime(api.is.RenewTime.Add(time.Minute))
		}
		api.fail = nil
		if i == 3 {
			api.fail = errors.New("no answer")
		}
		_, _, _ = l.Get(t.Context())
		want := []time.Duration{0, 0, time.Minute, 2 * time.Minute, 0}[i]
		if got := l.fence.SinceRenewed(); got != want {
			t.Errorf("%d: renewed %s ago, want %s", i, got, want)
		}
	}
}
