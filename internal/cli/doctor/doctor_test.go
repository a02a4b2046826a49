// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/config"
	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func TestVersions(t *testing.T) {
	for of, want := range map[string]Result{
		"v1.37.2": OK, "v1.30.0": OK, "v1.33.4-gke.100": OK, "v1.29.9": Fail, "v1.38.0": Warn, "": Unknown, "unknown": Unknown,
	} {
		if got := checkVersion(of); got.Result != want || (want == Fail || want == Warn) != (got.Fix != "") {
			t.Errorf("%q: %+v, want %s", of, got, want)
		}
	}
	page, err := os.ReadFile("../../../docs/reference/support.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"| " + newestVersion + " | tested", "| before " + oldestVersion + " | not"} {
		if !strings.Contains(string(page), line) {
			t.Errorf("the page has no line %q", line)
		}
	}
}

func TestClocks(t *testing.T) {
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		ahead, took time.Duration
		want        Result
		wantText    string
	}{
		{0, time.Millisecond, OK, ""},
		{-4 * time.Second, time.Millisecond, OK, ""},
		{-6 * time.Second, time.Millisecond, Warn, "6s behind"},
		{7 * time.Second, time.Millisecond, Warn, "7s ahead of"},
		{7 * time.Second, 5 * time.Second, OK, ""}, // the response may be from the end of the request
		{-time.Hour, time.Millisecond, Fail, "1h0m0s behind"},
	} {
		got := compareClock("c", sent.Add(tt.ahead).Format(http.TimeFormat), sent, tt.took)
		if got.Result != tt.want || !strings.Contains(got.Why, tt.wantText) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
	if got := compareClock("c", "", sent, 0); got.Result != Unknown {
		t.Errorf("without a date: %+v", got)
	}
}

// definition is an embedded CRD.
func definition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	content, err := crd.Files.ReadFile("weir.dev_backendpools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// Missing fields are named; of a missing object only the object, not its children.
func TestDefinitionsAreComparedByField(t *testing.T) {
	older, newest := definition(t), definition(t)
	versions, _, _ := unstructured.NestedSlice(older.Object, "spec", "versions")
	version := versions[0].(map[string]any)
	spec := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)
	delete(spec["properties"].(map[string]any), "pause")
	spec["properties"].(map[string]any)["paused"].(map[string]any)["type"] = "string"
	delete(spec, "x-kubernetes-validations")
	if err := unstructured.SetNestedSlice(older.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	missing, surplus := diffPaths(schemaPaths(newest), schemaPaths(older))
	text := strings.Join(missing, "\n")
	for _, want := range []string{"v1alpha1 spec.pause (object)", "v1alpha1 spec.paused (boolean)", `v1alpha1 spec rule "`} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in %s", want, text)
		}
	}
	if strings.Contains(text, "spec.pause.until") || !slices.Equal(surplus, []string{"v1alpha1 spec.paused (string)"}) {
		t.Errorf("missing %s; surplus %s", text, surplus)
	}
	version["served"] = false
	if err := unstructured.SetNestedSlice(older.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if missing, _ := diffPaths(schemaPaths(newest), schemaPaths(older)); !slices.Contains(missing, "v1alpha1") {
		t.Errorf("a version that is not served: %s", missing[:1])
	}
	if missing, surplus := diffPaths(schemaPaths(newest), schemaPaths(newest)); len(missing)+len(surplus) > 0 {
		t.Errorf("with itself: %s, %s", missing, surplus)
	}
}

// Each verb of each controller role in config/ is checked.
func TestRightsAreThoseOfTheRoles(t *testing.T) {
	roles, err := loadRoles()
	if err != nil {
		t.Fatal(err)
	}
	requested := map[string]bool{}
	for _, r := range roles {
		for _, name := range requiredAccess(r) {
			requested[r.Name+": "+describeAccess(name)] = true
		}
	}
	page, err := os.ReadFile("../../../docs/reference/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.SplitSeq(string(page), "\n") { // | `account` | [`role`](file) | `resource.group` | verbs | where |
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.Trim(cells[1], " `") != "weir" {
			continue
		}
		role, _, _ := strings.Cut(strings.TrimPrefix(cells[2], " [`"), "`")
		resource := strings.Trim(cells[3], " `")
		kind, sub, isSub := strings.Cut(resource, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if isSub {
			kind += "/" + sub
		}
		for verb := range strings.SplitSeq(strings.TrimSpace(cells[4]), ", ") {
			text := role + ": " + verb + " " + kind
			if !slices.ContainsFunc(keys(requested), func(k string) bool { return k == text || strings.HasPrefix(k, text+" ") }) {
				t.Errorf("%s is not requested", text)
			}
			n++
		}
	}
	if n < 30 {
		t.Errorf("%d rights on the page", n)
	}
}

func keys(of map[string]bool) (names []string) {
	for k := range of {
		names = append(names, k)
	}
	return names
}

// azureAt checks a resource group at a test server.
func azureAt(t *testing.T, server *httptest.Server, settings string) *Azure {
	t.Helper()
	file := t.TempDir() + "/azure.json"
	if err := os.WriteFile(file, []byte(`{"subscriptionId":"sub","resourceGroup":"rg"`+settings+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := app.OpenAzure(app.Options{ConfigFile: file, ClusterName: "kubernetes", AzureEndpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &Azure{Azure: got}
}

// permission is a role of the caller, as Azure lists it.
type permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// Next pages are read only from the original host, so that the token is sent nowhere else.
func TestPagesOfPermissions(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host is asked") }))
	defer elsewhere.Close()
	next, status := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"error":{"code":"AuthorizationFailed","message":"no"}}`)
			return
		}
		page := map[string]any{"value": []permission{{Actions: []string{"Microsoft.Network/*"}, NotActions: []string{"Microsoft.Network/loadBalancers/delete"}}}}
		if next == "no list" {
			page = map[string]any{"error": "an answer of something else"}
		} else if req.URL.Query().Get("page") == "2" {
			page["value"] = []permission{{Actions: []string{"Microsoft.Network/loadBalancers/delete"}}}
		} else if next != "" {
			page["nextLink"] = next
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	a := azureAt(t, server, "")
	const scope = "/subscriptions/sub/resourceGroups/rg"
	at := scope + "/providers/Microsoft.Authorization/permissions"
	actions := []string{"Microsoft.Network/loadBalancers/read", "Microsoft.Network/loadBalancers/delete"}
	for _, tt := range []struct {
		next   string
		status int
		want   Result
		reason string
	}{
		{"", 200, Fail, "lacks Microsoft.Network/loadBalancers/delete"}, // excluded by notActions of the only role
		{server.URL + at + "?page=2", 200, OK, "2 actions"},             // granted by another role
		{elsewhere.URL + at + "?page=2", 200, Unknown, "another address"},
		{server.URL + at + "/x?page=2", 200, Unknown, "another address"},
		{server.URL + at + "?page=1", 200, Unknown, "more than 20 pages"},
		{"no list", 200, Unknown, "no list of permissions"},
		{"", 403, Unknown, "403 AuthorizationFailed: no"},
	} {
		next, status = tt.next, tt.status
		got := a.checkActions(t.Context(), scope, actions)
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.reason) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// Every action of the role is checked, except a few that only some Services need.
func TestRequiredActions(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	a := azureAt(t, server, `,"vnetName":"v","vnetResourceGroup":"net","subnetName":"s","securityGroupName":"g","loadBalancerResourceGroup":"lbs","loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"`)
	var role struct{ Actions []string }
	content, err := config.Roles.ReadFile("azure-role.json")
	if err != nil || json.Unmarshal(content, &role) != nil || len(role.Actions) < 15 {
		t.Fatalf("%v: %s", err, role.Actions)
	}
	var remaining []string
	for _, action := range role.Actions {
		if a.requiredScope(action) == "" {
			remaining = append(remaining, action)
		}
	}
	// The checks of zones and of the region's limits read them.
	if !slices.Equal(remaining, []string{"Microsoft.Network/publicIPPrefixes/join/action", "Microsoft.Network/locations/usages/read", "Microsoft.Resources/subscriptions/locations/read"}) {
		t.Errorf("%s is not requested", remaining)
	}
	for action, want := range map[string]string{
		"Microsoft.Network/loadBalancers/backendAddressPools/write": "/subscriptions/sub/resourceGroups/lbs",
		"Microsoft.Network/publicIPAddresses/write":                 "/subscriptions/sub/resourceGroups/rg",
		"Microsoft.Network/virtualNetworks/joinLoadBalancer/action": "/subscriptions/sub/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v",
		"Microsoft.Network/virtualNetworks/subnets/join/action":     "/subscriptions/sub/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/s",
		"Microsoft.Network/networkSecurityGroups/write":             "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/g",
		"Microsoft.Compute/virtualMachines/read":                    "/subscriptions/sub/resourceGroups/rg",
		"Microsoft.Network/networkInterfaces/write":                 "/subscriptions/sub/resourceGroups/rg",
		"Microsoft.Compute/virtualMachineScaleSets/write":           "/subscriptions/sub/resourceGroups/rg",
	} {
		if got := a.requiredScope(action); got != want {
			t.Errorf("%s is needed on %q, want %q", action, got, want)
		}
	}
}

func TestUnused(t *testing.T) {
	a := &Azure{}
	if got := a.unused(); got[0].Result != Unknown {
		t.Errorf("%+v", got)
	}
	ip := func(name, of, usedBy string) lb.PublicIP {
		return lb.PublicIP{ID: lb.ResourceID{Name: name}, UsedBy: usedBy, Address: netip.MustParseAddr("198.18.0.3"),
			Tags: map[string]string{"k8s-azure-cluster-name": "kubernetes", "k8s-azure-service": of}}
	}
	for name, tt := range map[string]struct {
		ip     lb.PublicIP
		tags   map[string]string
		want   Result
		reason string
	}{
		"in use":                      {ip("kubernetes-a001", "shop/web", "/x"), nil, OK, ""},
		"of people":                   {ip("mine", "shop/web", ""), nil, OK, ""},
		"of a Service":                {ip("kubernetes-a001-IPv4", "shop/web", ""), nil, Warn, "not in use: public IP kubernetes-a001-IPv4 (198.18.0.3), made for Service shop/web"},
		"left":                        {ip("kubernetes-a001", "", ""), nil, Warn, "not in use: public IP kubernetes-a001 (198.18.0.3), made for a Service that has left it"},
		"a frontend that is required": {ip("mine", "", ""), map[string]string{"weir-retained-frontend": "a001"}, Warn, "not in use: frontend a001 of load balancer kubernetes"},
	} {
		a.ips, a.loadBalancers = []lb.PublicIP{tt.ip}, []lb.LoadBalancer{{ID: lb.LoadBalancerID{Name: "kubernetes"}, Tags: tt.tags}}
		if got := a.unused(); got[0].Result != tt.want || tt.reason != "" && got[0].Why != tt.reason || (tt.want == Warn) != (got[0].Fix != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRetainedAddresses(t *testing.T) {
	tags := map[string]string{"weir-retained-10.0.0.4": "2026-11-28T04:00:00Z shop/in nodes"}
	kept := lb.PublicIP{ID: lb.ResourceID{Name: "kubernetes-a001"}, Address: netip.MustParseAddr("198.18.0.3"), Tags: map[string]string{"k8s-azure-service": "shop/web", "k8s-azure-cluster-name": "kubernetes", "weir-retained-since": "2026-11-28T04:00:00Z"}}
	for want, a := range map[string]Azure{
		"no address is retained": {ips: []lb.PublicIP{}, loadBalancers: []lb.LoadBalancer{}},
		"retained: 1 public IPs, which Azure bills, and 1 private addresses; weir address release gives one up: " +
			"kubernetes-a001 (198.18.0.3), of Service shop/web of cluster kubernetes since 2026-11-28T04:00:00Z, 10.0.0.4 of load balancer kubernetes-internal, of Service shop/in since 2026-11-28T04:00:00Z": {
			ips: []lb.PublicIP{kept}, loadBalancers: []lb.LoadBalancer{{ID: lb.LoadBalancerID{Name: "kubernetes-internal"}, Tags: tags}}},
		"the load balancers and public IP addresses were not read": {},
	} {
		if got := a.retainedAddresses(); got[0].Why != want {
			t.Errorf("%+v", got)
		}
	}
}

func TestLeftPools(t *testing.T) {
	const id = "/subscriptions/s/resourcegroups/rg/providers/microsoft.network/loadbalancers/kubernetes/backendaddresspools/shop-web"
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}, Data: map[string]string{"left-pools": id + " shop/web\n"}}
	for name, tt := range map[string]struct {
		objects []client.Object
		want    Result
		reason  string
	}{
		"none": {nil, OK, "none is on record"},
		"one":  {[]client.Object{m}, Warn, "backend pool shop-web of load balancer kubernetes, made for Service shop/web"},
	} {
		d := Doctor{API: fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(tt.objects...).Build(), Namespace: "weir-system"}
		if got := d.leftPools(t.Context()); got[0].Result != tt.want || got[0].Why != tt.reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// After the API server times out, it gets no further requests.
func TestASilentAPIServer(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
	defer server.Close()
	defer close(hangs)
	d := Doctor{REST: &rest.Config{Host: server.URL}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r := d.RunChecks(ctx)
	if len(r.Checks) != 1 || r.Checks[0].Result != Unknown || !strings.Contains(r.Checks[0].Why, "no answer within") || r.HasResponse() {
		t.Errorf("%+v", r)
	}
}

// The API server stops answering before the health of members is read: the check ends all the same.
func TestHealthWithASilentAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := interceptor.Funcs{List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithInterceptorFuncs(hang).Build()
		d := Doctor{API: api, Health: func(context.Context, string, string) ([]app.RuleHealth, error) { return nil, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if c := d.checkHealth(ctx); c.Result != Unknown || !strings.Contains(c.Why, "no answer within") || time.Since(began) > CheckTimeout {
			t.Errorf("after %s: %+v", time.Since(began), c)
		}
	})
}

func TestReportText(t *testing.T) {
	r := Report{Checks: []Check{{"API server", OK, "Kubernetes 1.37.2", ""}, {"a\tb", Fail, "it\x1b[2J lacks", "give it"}, {"c", Unknown, "who knows", ""}}}
	var out bytes.Buffer
	var colored bytes.Buffer
	if err := errors.Join(r.WriteText(&out), r.WriteColored(&colored)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\x1b[31m3 checks: 1 fail", "\x1b[31mFAIL   \x1b[0m   a b", "\x1b[1mWhat helps:\x1b[0m give it", "\x1b[33mUNKNOWN\x1b[0m   c", "\x1b[32mOK     \x1b[0m   API"} {
		if !strings.Contains(colored.String(), want) {
			t.Errorf("no %q in %q", want, colored.String())
		}
	}
	if got := regexp.MustCompile("\x1b\\[\\d+m").ReplaceAllString(colored.String(), ""); got != out.String() {
		t.Errorf("without colors it is\n%s\nwant\n%s", got, &out)
	}
	const want = `3 checks: 1 fail, 0 warn, 1 not known.

FAIL      a b
          it [2J lacks
          What helps: give it

UNKNOWN   c
          who knows

OK        API server   Kubernetes 1.37.2
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// Results for the required CRD and for one of provisioning.
func TestDefinitions(t *testing.T) {
	served := func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, "x")
	for _, tt := range []struct {
		name   string
		needs  bool
		err    error
		expect func(*unstructured.Unstructured)
		want   Result
		reason string
	}{
		{"as it is to be", true, nil, served, OK, "all fields"},
		{"not installed", true, gone, nil, Fail, "not in the cluster"},
		{"not installed, and for provisioning", false, gone, nil, Warn, "weir-provisioner does not start"},
		{"not served", true, nil, func(*unstructured.Unstructured) {}, Fail, "Established"},
		{"who may not ask", true, apierrors.NewForbidden(schema.GroupResource{}, "", nil), nil, Unknown, "you may not"},
		{"no answer", true, errors.New("EOF"), nil, Unknown, "EOF"},
		{"older", true, nil, func(o *unstructured.Unstructured) {
			served(o)
			_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"name": "v1alpha1", "served": true}}, "spec", "versions")
		}, Fail, "drops what it does not know"},
		{"newer", true, nil, func(o *unstructured.Unstructured) {
			served(o)
			definitions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
			_ = unstructured.SetNestedSlice(o.Object, append(definitions, map[string]any{"name": "v1", "served": true}), "spec", "versions")
		}, Warn, "newer than this program, which does not know v1"},
	} {
		d := Doctor{API: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
				if tt.err != nil {
					return tt.err
				}
				current := definition(t)
				if key.Name != current.GetName() {
					t.Errorf("asked for %s", key)
				}
				tt.expect(current)
				obj.(*unstructured.Unstructured).Object = current.Object
				return nil
			},
		})}
		want := definition(t)
		if !tt.needs {
			want.SetName("provisions.weir.dev")
		}
		got := d.checkDefinition(t.Context(), want)
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.reason) || (tt.want == Fail || tt.want == Warn) && got[0].Fix == "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// Waiting Provisions without a provisioner are a warning with a fix; without Provisions no provisioner is
// needed.
func TestProvisionerCheck(t *testing.T) {
	scheme := metadata.Scheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	waits := &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}}
	lease := func(renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-provisioner"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("p-0"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(renewed)),
		}}
	}
	for name, tt := range map[string]struct {
		has    []client.Object
		want   Result
		reason string
	}{
		"nothing":             {nil, OK, "no Provision is in progress; there is no Lease weir-provisioner"},
		"it leads":            {[]client.Object{waits, lease(time.Now().Add(time.Hour))}, OK, "p-0 leads"},
		"none leads":          {[]client.Object{waits, lease(time.Now().Add(-time.Hour))}, Warn, "no process of weir-provisioner has led since"},
		"none leads, no work": {[]client.Object{lease(time.Now().Add(-time.Hour))}, OK, "no Provision is in progress; no process"},
		"not installed":       {[]client.Object{waits}, Warn, "there is no Lease weir-provisioner"},
	} {
		got := Doctor{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.has...).Build()}.checkProvisioner(t.Context())
		if len(got) != 1 || got[0].Result != tt.want || !strings.HasPrefix(got[0].Why, tt.reason) || (tt.want == Warn) != (got[0].Fix != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An invalid bound annotation is reported with its Namespace and value.
func TestBoundsOfNamespaces(t *testing.T) {
	named := func(name, value string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{service.MaxRules: value}}}
	}
	for _, tt := range []struct {
		objects []client.Object
		want    Result
		reason  string
	}{
		{nil, OK, "0 Namespaces"},
		{[]client.Object{named("team", "10")}, OK, "1 Namespace with bounds"},
		{[]client.Object{named("shop", "10"), named("team", "ten")}, Warn, `Namespace team: annotation weir.dev/max-rules is "ten"`},
	} {
		got := Doctor{API: fake.NewClientBuilder().WithObjects(tt.objects...).Build()}.checkBounds(t.Context())
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.reason) {
			t.Errorf("%v: %+v", tt.objects, got)
		}
	}
}

// A rejected read has the next step: a token for the identity, a permission, or a way to Azure.
func TestRejectedReads(t *testing.T) {
	for want, err := range map[string]error{
		"A managed identity exists only on its machine": &armerror.Fault{Class: armerror.Terminal, Code: armerror.CodeUnclassified, Err: errors.New("ManagedIdentityCredential authentication failed")},
		"docs/reference/permissions.md":                 &armerror.Fault{Class: armerror.Terminal, Code: "AuthorizationFailed", Err: errors.New("403")},
		"correct its name in azure.json":                &armerror.Fault{Class: armerror.Stale, Code: "ResourceGroupNotFound", Err: errors.New("404")},
	} {
		read := (&Azure{}).readCheck("load balancers", func(context.Context) (int, error) { return 0, err })
		c := read(t.Context())
		if len(c) != 1 || c[0].Result != Fail || !strings.Contains(c[0].Fix, want) || strings.Contains(c[0].Why, armerror.CodeUnclassified) {
			t.Errorf("%v: %+v, want %q", err, c, want)
		}
	}
}
