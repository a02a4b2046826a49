// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
)

// A 404 is stale only if it names the pool, its load balancer or their group.
func TestStale404s(t *testing.T) {
	const balancerGone = "The Resource 'Microsoft.Network/loadBalancers/kubernetes' under resource group 'rg' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
	tests := []struct {
		name, body string
		get, put   bool
	}{
		{"load balancer", errorBody("ResourceNotFound", balancerGone), true, true},
		{"load balancer, other case", errorBody("ResourceNotFound", strings.ToUpper(balancerGone)), true, true},
		{"pool", errorBody("NotFound", "Resource "+webPool.String()+" not found."), true, true},
		{"pool by its name alone", errorBody("NotFound", "Backend pool shop-web not found."), true, true},
		{"a network that our load balancer refers to", errorBody("ResourceNotFound", "Resource "+vnet+" referenced by "+webPool.String()+" was not found."), false, false},
		{"a part of our load balancer", errorBody("NotFound", "Resource "+webPool.LoadBalancer.String()+"/probes/p not found."), false, false},
		{"another load balancer in a group of our name", errorBody("ResourceNotFound", "The Resource 'Microsoft.Network/loadBalancers/other' under resource group 'kubernetes' was not found."), false, false},
		{"another pool of our load balancer", errorBody("NotFound", "Resource "+webPool.LoadBalancer.String()+"/backendAddressPools/other not found."), false, false},
		{"nothing named", errorBody("NotFound", "Not Found"), true, true},
		{"resource group", errorBody("ResourceGroupNotFound", "Resource group 'rg' could not be found."), true, true},
		{"another resource group", errorBody("ResourceGroupNotFound", "Resource group 'network-rg' could not be found."), true, false},
		{"virtual network", errorBody("ResourceNotFound", "The Resource 'Microsoft.Network/virtualNetworks/kubernetes' under resource group 'rg' was not found."), false, false},
		{"virtual network, as NotFound", errorBody("NotFound", "Resource "+vnet+" not found."), false, false},
		{"another load balancer", errorBody("ResourceNotFound", strings.ReplaceAll(balancerGone, "kubernetes", "kubernetes-internal")), false, false},
		{"subscription", errorBody("SubscriptionNotFound", "The subscription 's1' could not be found."), false, false},
		{"resource type", errorBody("InvalidResourceType", "no such type"), false, false},
		{"a detail of another error", errorBody("InvalidRequest", "No.", "ResourceNotFound", balancerGone), true, true},
		{"a proxy's page", "<html>kubernetes shop-web</html>", false, false},
		{"nothing", "", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool := readPool(t)
			client := newClient(t, &fakeARM{answer: replySequence(reply{status: 404, body: tt.body})})
			for op, want := range map[string]bool{opGet: tt.get, opPut: tt.put} {
				var err error
				if op == opGet {
					_, err = client.GetPool(t.Context(), webPool)
				} else {
					_, err = client.PutPool(t.Context(), pool)
				}
				f := armerror.FromError(err)
				if got := f.Class == armerror.Stale; got != want {
					t.Errorf("%s: %s, want stale: %v (%v)", op, f.Class, want, err)
				}
			}
		})
	}
}

// Azure's codes have at most 98 characters.
var (
	longCode = strings.Repeat("Long", 24) + "98"
	snatCode = "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule"
)

// A message is one actionable line.
func TestMessages(t *testing.T) {
	tests := []struct {
		name  string
		reply reply
		want  string
	}{
		{"code and message", reply{status: 409, body: errorBody("AnotherOperationInProgress", "Another operation is in progress.")},
			"read pool kubernetes/shop-web: 409 AnotherOperationInProgress: Another operation is in progress."},
		{"the innermost message", reply{status: 412, body: errorBody("PreconditionFailed", "Precondition failed.", "PreconditionFailedEtagMismatch", "Etag does not match.")},
			"read pool kubernetes/shop-web: 412 PreconditionFailed (PreconditionFailedEtagMismatch): Etag does not match."},
		{"a signed address", reply{status: 409, body: errorBody("AnotherOperationInProgress", "To retrieve status of the operation use uri: "+operation+"&s=secret .")},
			"read pool kubernetes/shop-web: 409 AnotherOperationInProgress: To retrieve status of the operation use uri: https://management.azure.com/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operations/7?api-version=2025-05-01 ."},
		{"lines, colours and directions", reply{status: 400, body: errorBody("Bad", "a\r\n\tb \x1b[31mred\x00 \u202egnp")},
			"read pool kubernetes/shop-web: 400 Bad: a b [31mred gnp"},
		{"a token", reply{status: 401, body: errorBody("InvalidAuthenticationToken", "The access token 'Bearer "+testToken+"' is invalid.")},
			"read pool kubernetes/shop-web: 401 InvalidAuthenticationToken: The access token 'Bearer REDACTED' is invalid."},
		{"a deny assignment", reply{status: 403, body: errorBody("DenyAssignmentAuthorizationFailed", "The client 'c' with object id 'o' has permission to perform action 'Microsoft.Network/loadBalancers/write' on scope '/a'; however, the access is denied because of the deny assignment with name 'n' at scope '/rg'.")},
			"read pool kubernetes/shop-web: 403 DenyAssignmentAuthorizationFailed: the access is denied because of the deny assignment with name 'n' at scope '/rg'."},
		{"an action that is missing elsewhere", reply{status: 403, body: errorBody("LinkedAuthorizationFailed", "The client 'c' with object id 'o' has permission to perform action 'Microsoft.Network/loadBalancers/write' on scope '/a'; however, it does not have permission to perform action(s) 'Microsoft.Network/virtualNetworks/joinLoadBalancer/action' on the linked scope(s) '/v'.")},
			"read pool kubernetes/shop-web: 403 LinkedAuthorizationFailed: the caller does not have permission to perform action(s) 'Microsoft.Network/virtualNetworks/joinLoadBalancer/action' on the linked scope(s) '/v'."},
		{"a code that is none", reply{status: 400, body: errorBody("<script>", "x")}, "read pool kubernetes/shop-web: 400 Bad Request: x"},
		{"a code of 98 characters", reply{status: 400, body: errorBody(longCode, "Too long.")}, "read pool kubernetes/shop-web: 400 " + longCode + ": Too long."},
		{"a code that is too long", reply{status: 400, body: errorBody(strings.Repeat("A", 129), "Endless.")}, "read pool kubernetes/shop-web: 400 Bad Request: Endless."},
		{"a detail without a code", reply{status: 400, body: errorBody("Bad", "x", "", "Inside.")}, "read pool kubernetes/shop-web: 400 Bad: Inside."},
		{"what the message does not say", reply{status: 400, body: errorBody(snatCode, "Rule a refers to frontend b.")},
			"read pool kubernetes/shop-web: 400 " + snatCode + `: Rule a refers to frontend b. To correct it, set "disableOutboundSNAT": true in azure.json, which sets disableOutboundSnat in all rules of Services, or choose another address`},
		{"no body", reply{status: 403}, "read pool kubernetes/shop-web: 403 Forbidden"},
		{"a code in a header", reply{status: 403, header: map[string]string{"x-ms-error-code": "AuthorizationFailed"}}, "read pool kubernetes/shop-web: 403 AuthorizationFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newClient(t, &fakeARM{answer: replySequence(tt.reply)}).GetPool(t.Context(), webPool)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	t.Run("not endless", func(t *testing.T) {
		body := errorBody("Bad", strings.Repeat("ü", 5000))
		_, err := newClient(t, &fakeARM{answer: replySequence(reply{status: 400, body: body})}).GetPool(t.Context(), webPool)
		if n := len([]rune(err.Error())); n != maxLineLength || !strings.HasSuffix(err.Error(), "…") {
			t.Errorf("%d runes", n)
		}
	})
	t.Run("details without end", func(t *testing.T) {
		body := `{"error":` + strings.Repeat(`{"code":"A","message":"m","details":[`, 200) + strings.Repeat(`]}`, 200) + `}`
		_, err := newClient(t, &fakeARM{answer: replySequence(reply{status: 400, body: body})}).GetPool(t.Context(), webPool)
		wantFault(t, err, armerror.Terminal, "A")
	})
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		message, name string
		want          bool
	}{
		{"group 'rg' is gone", "rg", true}, {"RG", "rg", true}, {"rg.", "rg", true},
		{"network-rg", "rg", false}, {"rg2", "rg", false}, {"a rg2 and rg", "rg", true}, {"", "rg", false},
	} {
		if got := containsName(tt.message, tt.name); got != tt.want {
			t.Errorf("names(%q, %q) = %v", tt.message, tt.name, got)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(lockBody), 429)
	f.Add([]byte(`{"error":"text"}`), 400)
	f.Add([]byte(`{"error":{"code":5}}`), 404)
	f.Add([]byte("Bearer "+testToken+"\r\n"), 500)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		if status < 400 || status > 599 || status == 401 {
			return
		}
		client := newClient(t, &fakeARM{answer: replySequence(reply{status: status, body: string(body)})}, func(o *Options) { o.Retry.MaxRetries = -1 })
		_, err := client.GetPool(t.Context(), webPool)
		found := armerror.FromError(err)
		if found == nil || strings.ContainsAny(found.Error(), "\r\n\x1b") || !codeRule.MatchString(found.Code) && found.Code != http.StatusText(status) {
			t.Errorf("status %d: code %q, message %q", status, found.Code, found.Error())
		}
	})
}

// A fault has Azure's request ID and correlation ID, if they are well-formed.
func TestAFaultNamesItsRequest(t *testing.T) {
	for _, tt := range []struct{ request, correlation, wantRequest, wantCorrelation string }{
		{"r1", "c1", "r1", "c1"},
		{"r1", "", "r1", ""},
		{"r1 and <b>more</b>", "c\u202e1", "", ""},
		{"", "", "", ""},
	} {
		refused := reply{status: 403, header: map[string]string{"X-Ms-Request-Id": tt.request, "X-Ms-Correlation-Request-Id": tt.correlation}}
		_, err := newClient(t, &fakeARM{answer: replySequence(refused)}).GetPool(t.Context(), webPool)
		if f := armerror.FromError(err); f.RequestID != tt.wantRequest || f.CorrelationID != tt.wantCorrelation {
			t.Errorf("%+v: request %q, correlation %q", tt, f.RequestID, f.CorrelationID)
		}
	}
}
