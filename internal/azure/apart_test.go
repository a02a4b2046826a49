// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

// Pools of a load balancer are decoded directly: the SDK's types would allocate four times as much
// per pool.
func TestPoolsAreDecodedApart(t *testing.T) {
	id := poolID("s1", "kubernetes", "").LoadBalancer
	for name, ask := range map[string]func(context.Context, *Client) ([]lb.LoadBalancer, error){
		"read": func(ctx context.Context, c *Client) ([]lb.LoadBalancer, error) {
			b, err := c.GetLoadBalancer(ctx, id)
			return []lb.LoadBalancer{b}, err
		},
		"listed": func(ctx context.Context, c *Client) ([]lb.LoadBalancer, error) {
			return c.ListLoadBalancers(ctx, id.SubscriptionID, id.ResourceGroup)
		},
		"written": func(ctx context.Context, c *Client) ([]lb.LoadBalancer, error) {
			b, err := c.PutLoadBalancer(ctx, lb.LoadBalancer{ID: id, SKU: lb.Standard})
			return []lb.LoadBalancer{b}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(pools int) float64 {
				return testing.AllocsPerRun(5, func() {
					client := newClient(t, &fakeARM{answer: func(_ int, r *http.Request) reply {
						body := balancerWith(id, pools)
						if strings.HasSuffix(strings.ToLower(r.URL.Path), "/loadbalancers") {
							body = `{"value":[` + body + `]}`
						}
						return reply{status: http.StatusOK, body: body}
					}})
					all, err := ask(t.Context(), client)
					if err != nil || len(all) != 1 || len(all[0].Pools) != pools || len(all[0].Pools[pools-1].Addresses) != 10 {
						t.Fatalf("%v: %d load balancers", err, len(all))
					}
				})
			}
			if each := (of(101) - of(1)) / 100; each > 300 {
				t.Errorf("%.0f allocations a pool", each)
			}
		})
	}
}

// balancerWith is a load balancer with pools of ten addresses each.
func balancerWith(id lb.LoadBalancerID, pools int) string {
	var ips, names []string
	for i := range 10 {
		ips = append(ips, fmt.Sprint("10.0.0.", i))
	}
	for i := range pools {
		name := fmt.Sprint("p", i)
		body := strings.Replace(poolBody("Succeeded", ips...), pathPlaceholder, lb.PoolID{LoadBalancer: id, Name: name}.String(), 1)
		names = append(names, strings.Replace(body, "{", `{"name":"`+name+`",`, 1))
	}
	return fmt.Sprintf(`{"id":"%s","name":"%s","etag":"W/\"e1\"","properties":{"provisioningState":"Succeeded","backendAddressPools":[%s]}}`,
		id, id.Name, strings.Join(names, ","))
}
