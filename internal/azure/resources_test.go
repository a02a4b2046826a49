// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// A list with an unexpected item is rejected as a whole.
func TestLists(t *testing.T) {
	const group = "/subscriptions/S1/resourceGroups/RG/providers/Microsoft.Network/"
	page := func(next string, items ...string) reply {
		if next != "" {
			next = `,"nextLink":"` + next + `"`
		}
		return newReply(200, `{"value":[`+strings.Join(items, ",")+`]`+next+`}`)
	}
	item := func(id string) string { return `{"id":"` + id + `","etag":"e","properties":{}}` }
	more := func(kind string) string { // the next page has the same path
		return "https://management.azure.com/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/" + kind + "?page=2"
	}
	tests := []struct {
		name    string
		answers func(kind string) []reply
		want    string
		class   armerror.Class
		code    string
	}{
		{"two pages", func(kind string) []reply {
			return []reply{page(more(kind), item(group+kind+"/a")), page("", item(group+kind+"/B"))}
		}, "a B", "", ""},
		{"nothing there", func(string) []reply { return []reply{page("")} }, "", "", ""},
		{"no list", func(string) []reply { return []reply{newReply(200, "{}")} }, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"null in it", func(string) []reply { return []reply{page("", "null")} }, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"something without an id", func(string) []reply { return []reply{page("", `{"name":"a","properties":{}}`)} }, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"something without properties", func(kind string) []reply { return []reply{page("", `{"id":"`+group+kind+`/a"}`)} }, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"another group's", func(kind string) []reply {
			return []reply{page("", item(strings.Replace(group, "RG", "other", 1)+kind+"/a"))}
		}, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"another subscription's", func(kind string) []reply {
			return []reply{page("", item(strings.Replace(group, "S1", "s2", 1)+kind+"/a"))}
		}, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"another type", func(string) []reply { return []reply{page("", item(group+"natGateways/a"))} }, "", armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"the group is gone", func(string) []reply {
			return []reply{newReply(404, errorBody("ResourceGroupNotFound", "Resource group 'rg' could not be found."))}
		}, "", armerror.Stale, "ResourceGroupNotFound"},
		{"something else is gone", func(string) []reply { return []reply{errorReply(404, "ResourceNotFound")} }, "", armerror.Terminal, "ResourceNotFound"},
		{"a 404 without a word", func(string) []reply { return []reply{newReply(404, "")} }, "", armerror.Terminal, "Not Found"},
		{"a second page that is gone", func(kind string) []reply {
			return []reply{page(more(kind), item(group+kind+"/a")), errorReply(404, "NotFound")}
		}, "", armerror.Terminal, "NotFound"},
		{"a page that leads away", func(kind string) []reply {
			return []reply{page("https://elsewhere.example/more", item(group+kind+"/a"))}
		}, "", armerror.Terminal, armerror.CodeUnclassified},
		{"a second page that is refused", func(kind string) []reply {
			return []reply{page(more(kind), item(group+kind+"/a")), errorReply(403, "AuthorizationFailed")}
		}, "", armerror.Terminal, "AuthorizationFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check := func(got string, n int, err error) {
				t.Helper()
				if tt.class != "" {
					if wantFault(t, err, tt.class, tt.code); n > 0 {
						t.Errorf("found %q beside the error", got)
					}
				} else if err != nil || strings.TrimSpace(got) != tt.want {
					t.Errorf("found %q, %v", got, err)
				}
			}
			var names string
			balancers, err := newClient(t, &fakeARM{answer: replySequence(tt.answers("loadBalancers")...)}).ListLoadBalancers(t.Context(), "s1", "rg")
			for _, b := range balancers {
				names += " " + b.ID.Name
				if b.ID.SubscriptionID != "s1" || b.ID.ResourceGroup != "rg" {
					t.Errorf("found %+v", b.ID)
				}
			}
			check(names, len(balancers), err)
			names = ""
			ips, err := newClient(t, &fakeARM{answer: replySequence(tt.answers("publicIPAddresses")...)}).ListPublicIPs(t.Context(), "s1", "rg")
			for _, ip := range ips {
				names += " " + ip.ID.Name
			}
			check(names, len(ips), err)
		})
	}
}

// Requests that would lose data or change the meaning of a URL are not sent.
func TestResourcesRefusedBeforeTheWire(t *testing.T) {
	ctx, evil := t.Context(), "x/../../y?z"
	b, ip := readBalancer(t), readPublicIP(t, richPublicIP)
	alter := func(change func(*lb.LoadBalancer)) lb.LoadBalancer { next := b; change(&next); return next }
	alterIP := func(change func(*lb.PublicIP)) lb.PublicIP { next := ip; change(&next); return next }
	tests := []struct {
		name, code string
		call       func(*Client) error
	}{
		{"id in a read", codeInvalidID, func(c *Client) error {
			_, err := c.GetLoadBalancer(ctx, lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: evil})
			return err
		}},
		{"id in a list", codeInvalidID, func(c *Client) error { _, err := c.ListLoadBalancers(ctx, "s1", evil); return err }},
		{"id in a write", codeInvalidID, func(c *Client) error {
			_, err := c.PutLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.ID.Name = evil }))
			return err
		}},
		{"a pool's name in a write", codeInvalidID, func(c *Client) error {
			_, err := c.PutLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.Pools = []lb.Pool{{ID: lb.PoolID{Name: evil}}} }))
			return err
		}},
		{"id in a deletion", codeInvalidID, func(c *Client) error {
			return c.DeleteLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.ID.Name = evil }))
		}},
		{"never read", codeResourceNotRead, func(c *Client) error {
			_, err := c.PutLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.Origin = nil }))
			return err
		}},
		{"never read, to be deleted", codeResourceNotRead, func(c *Client) error { return c.DeleteLoadBalancer(ctx, lb.LoadBalancer{ID: kubernetes}) }},
		{"no etag", codeNoEtag, func(c *Client) error {
			_, err := c.PutLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.Etag = "" }))
			return err
		}},
		{"no etag, to be deleted", codeNoEtag, func(c *Client) error {
			return c.DeleteLoadBalancer(ctx, alter(func(b *lb.LoadBalancer) { b.Etag = "" }))
		}},
		{"public IP: id in a read", codeInvalidID, func(c *Client) error {
			_, err := c.GetPublicIP(ctx, lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: evil})
			return err
		}},
		{"public IP: another type", codeInvalidID, func(c *Client) error {
			_, err := c.GetPublicIP(ctx, lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypePublicIPPrefix, Name: "a"})
			return err
		}},
		{"public IP: never read", codeResourceNotRead, func(c *Client) error {
			_, err := c.PutPublicIP(ctx, alterIP(func(ip *lb.PublicIP) { ip.Origin = nil }))
			return err
		}},
		{"public IP: never read, to be deleted", codeResourceNotRead, func(c *Client) error { return c.DeletePublicIP(ctx, lb.PublicIP{ID: webPublicIP}) }},
		{"public IP: no etag", codeNoEtag, func(c *Client) error {
			_, err := c.PutPublicIP(ctx, alterIP(func(ip *lb.PublicIP) { ip.Etag = "" }))
			return err
		}},
		{"no virtual network", codeNoVirtualNetwork, func(c *Client) error {
			c.opts.VirtualNetworkID = ""
			_, err := c.PutLoadBalancer(ctx, lb.LoadBalancer{ID: kubernetes, Pools: []lb.Pool{{ID: lb.PoolID{Name: "p"}, Addresses: wantedAddresses()}}})
			return err
		}},
		{"no providerID", codeInvalidID, func(c *Client) error { _, err := c.AvailabilitySet(ctx, "aws:///a"); return err }},
		{"a scale set's", codeInvalidID, func(c *Client) error {
			_, err := c.AvailabilitySet(ctx, "azure:///subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/0")
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wire := &fakeARM{answer: replySequence(newReply(200, busyBalancer))}
			wantFault(t, tt.call(newClient(t, wire)), armerror.Terminal, tt.code)
			if n := wire.count(""); n != 0 {
				t.Errorf("%d requests left", n)
			}
		})
	}
}

const (
	webMachine = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/n1"
	machineSet = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/availabilitySets/Blue"
)

func TestAvailabilitySets(t *testing.T) {
	tests := []struct {
		name, want string
		answer     reply
		class      armerror.Class
		code       string
	}{
		{"in one", "Blue", newReply(200, `{"id":"`+strings.ToUpper(webMachine)+`","properties":{"availabilitySet":{"id":"`+machineSet+`"}}}`), "", ""},
		{"in none", "", newReply(200, `{"id":"`+webMachine+`","properties":{}}`), "", ""},
		{"another machine", "", newReply(200, `{"id":"`+webMachine+`2","properties":{}}`), armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"nothing", "", newReply(200, `{}`), armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"gone", "", newReply(404, errorBody("ResourceNotFound", "The Resource 'Microsoft.Compute/virtualMachines/n1' under resource group 'rg' was not found.")), armerror.Stale, "ResourceNotFound"},
		{"refused", "", errorReply(403, "AuthorizationFailed"), armerror.Terminal, "AuthorizationFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wire := &fakeARM{answer: replySequence(tt.answer)}
			got, err := newClient(t, wire).AvailabilitySet(t.Context(), "azure://"+webMachine)
			if tt.class != "" {
				wantFault(t, err, tt.class, tt.code)
			} else if err != nil || got != tt.want {
				t.Errorf("got %q, %v", got, err)
			}
			if call := wire.calls[0]; call.path != webMachine || call.header.Get("Authorization") != "Bearer "+testToken || len(wire.calls) != 1 {
				t.Errorf("sent %+v", wire.calls)
			}
		})
	}
}

// A lock blocks requests about the load balancer, a quota those of the subscription. A Retry-After
// blocks the resource in any case.
func TestDelaysByALockAndAQuota(t *testing.T) {
	requests := map[string]func(context.Context, *Client) error{
		"its pool":     func(ctx context.Context, c *Client) error { _, err := c.GetPool(ctx, webPool); return err },
		"itself":       func(ctx context.Context, c *Client) error { _, err := c.GetLoadBalancer(ctx, kubernetes); return err },
		"its deletion": func(ctx context.Context, c *Client) error { return c.DeleteLoadBalancer(ctx, readBalancer(t)) },
		"the list":     func(ctx context.Context, c *Client) error { _, err := c.ListLoadBalancers(ctx, "s1", "rg"); return err },
		"a public IP":  func(ctx context.Context, c *Client) error { _, err := c.GetPublicIP(ctx, webPublicIP); return err },
		"its being written": func(ctx context.Context, c *Client) error {
			_, err := c.PutPublicIP(ctx, readPublicIP(t, richPublicIP))
			return err
		},
		"its being deleted": func(ctx context.Context, c *Client) error {
			return c.DeletePublicIP(ctx, readPublicIP(t, richPublicIP))
		},
		"a machine's set": func(ctx context.Context, c *Client) error {
			_, err := c.AvailabilitySet(ctx, "azure://"+webMachine)
			return err
		},
		"another's deletion": func(ctx context.Context, c *Client) error {
			b := readBalancer(t)
			b.ID.Name = "other"
			return c.DeleteLoadBalancer(ctx, b)
		},
	}
	tests := []struct {
		name, by string // the request that gets the 429
		body     string
		holds    string // the blocked requests, sorted
	}{
		{"a lock", "itself", lockBody, "its deletion, its pool, itself"},
		{"a lock, met by a deletion", "its deletion", lockBody, "its deletion, its pool, itself"},
		{"a lock that a public IP meets", "its being written", lockBody, "a public IP, its being deleted, its being written"},
		{"a lock that a list meets", "the list", lockBody, "the list"},
		{"a quota of reads", "a public IP", subBody, "a machine's set, a public IP, its being deleted, its being written, its pool, itself, the list"},
		{"a quota of reads that a list meets", "the list", subBody, "a machine's set, a public IP, its pool, itself, the list"},
		{"a quota of writes", "its being written", subBody, "a public IP, another's deletion, its being deleted, its being written, its deletion"},
		{"a quota of writes that a deletion meets", "its being deleted", subBody, "a public IP, another's deletion, its being deleted, its being written, its deletion"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &fakeARM{answer: replySequence(slower(newReply(429, tt.body), "60"), reply{status: 403})}
				reported := 0
				client := newClient(t, wire, func(o *Options) { o.OnGateClosed = func(string, time.Time) { reported++ } })
				if f := armerror.FromError(requests[tt.by](t.Context(), client)); f == nil || !f.RetryAt.Equal(time.Now().Add(time.Minute)) {
					t.Fatalf("got %v", f)
				}
				if closes := !strings.HasPrefix(tt.name, "a lock that "); (reported == 1) != closes {
					t.Errorf("%d gates were told to close", reported)
				}
				var held []string
				for _, name := range slices.Sorted(maps.Keys(requests)) {
					before := wire.count("")
					f := armerror.FromError(requests[name](t.Context(), client))
					if wire.count("") == before {
						held = append(held, name)
						if f.Code != armerror.CodeGateClosed && f.Code != armerror.CodeRetryAfter {
							t.Errorf("%s: %v", name, f)
						}
					}
				}
				if got := strings.Join(held, ", "); got != tt.holds {
					t.Errorf("held up: %s\n   want: %s", got, tt.holds)
				}
			})
		})
	}
}

// Messages name the operation and the target.
func TestMessagesAboutResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, b, ip := t.Context(), readBalancer(t), readPublicIP(t, richPublicIP)
		taken := reply{status: 202, header: map[string]string{"Azure-AsyncOperation": operation}}
		failed := newReply(200, `{"status":"Failed","error":{"code":"Bad","message":"m"}}`)
		tests := []struct {
			want    string
			call    func(*Client) error
			answers []reply
		}{
			{"read load balancer kubernetes: 409 C: m", func(c *Client) error { _, err := c.GetLoadBalancer(ctx, kubernetes); return err }, nil},
			{"list load balancers of resource group rg: 409 C: m", func(c *Client) error { _, err := c.ListLoadBalancers(ctx, "s1", "rg"); return err }, nil},
			{"write load balancer kubernetes: 409 C: m", func(c *Client) error { _, err := c.PutLoadBalancer(ctx, b); return err }, nil},
			{"delete load balancer kubernetes: 409 C: m", func(c *Client) error { return c.DeleteLoadBalancer(ctx, b) }, nil},
			{"delete load balancer kubernetes: Azure accepted the deletion and then ended it as Bad: m", func(c *Client) error { return c.DeleteLoadBalancer(ctx, b) }, []reply{taken, failed}},
			{"delete public IP web: outcome unknown, could not follow the accepted deletion: 403 Forbidden", func(c *Client) error { return c.DeletePublicIP(ctx, ip) }, []reply{taken, {status: 403}}},
			{"write public IP web: 409 C: m", func(c *Client) error { _, err := c.PutPublicIP(ctx, ip); return err }, nil},
			{"read virtual machine n1: 409 C: m", func(c *Client) error { _, err := c.AvailabilitySet(ctx, "azure://"+webMachine); return err }, nil},
		}
		for _, tt := range tests {
			if tt.answers == nil {
				tt.answers = []reply{newReply(409, errorBody("C", "m"))}
			}
			if err := tt.call(newClient(t, &fakeARM{answer: replySequence(tt.answers...)})); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		}
	})
}

// The guard of a deletion is sent only with the deletion.
func TestADeletionIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(reply{status: 202, header: map[string]string{"Azure-AsyncOperation": operation}}, working, done)}
		if err := newClient(t, wire).DeleteLoadBalancer(t.Context(), readBalancer(t)); err != nil {
			t.Fatal(err)
		}
		for i, call := range wire.calls {
			if want := map[string]string{http.MethodDelete: `W/"e1"`}[call.method]; call.header.Get("If-Match") != want {
				t.Errorf("request %d (%s): If-Match %q, want %q", i+1, call.method, call.header.Get("If-Match"), want)
			}
		}
		if got := wire.timeline(epoch); got != "0s DELETE, 2s poll, 4s poll" {
			t.Errorf("on the wire: %s", got)
		}
	})
}
