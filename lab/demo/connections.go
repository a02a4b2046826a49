// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/dataplane"
)

// ConnectionsSummary counts real connections during a rolling restart. They do not fail a run: a busy machine delays
// probes and pods.
type ConnectionsSummary struct {
	Address   string `json:"address"`
	Attempted int    `json:"attempted"`
	Lost      int    `json:"lost"`
	Cut       int    `json:"cut"`
}

func (c ConnectionsSummary) String() string {
	return fmt.Sprintf("Real connections to web during a rolling restart: %d, lost %d, cut %d.", c.Attempted, c.Lost, c.Cut)
}

// connections is the data plane of the demo and its client.
type connections struct {
	balancer *dataplane.Balancer
	url      string
	load     *dataplane.Load // nil once stopped
	count    dataplane.LoadCount
	closeAll []func() // in the order of starting
}

// connectionStep sends real connections to web. A data plane that does not start is a note.
func connectionStep() step {
	return step{
		title: "Last: real connections, through sockets on loopback.", name: "connections", usual: 5,
		run: (*stage).restartUnderLoad, check: (*stage).countConnections,
	}
}

func (s *stage) restartUnderLoad(ctx context.Context) error {
	if err := s.openConnections(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.closeConnections()
		s.addNote("no real connections: " + err.Error())
		return nil
	}
	s.printAction("kubectl rollout restart deployment web, while 50 connections a second go to it")
	return s.cluster.restartDeployment(ctx, "web")
}

// connectionsDeadline is how long the data plane may take to forward.
const connectionsDeadline = 30 * time.Second

// openConnections starts the data plane and a client of web.
func (s *stage) openConnections(ctx context.Context) error {
	s.connections = &connections{}
	var web corev1.Service
	if err := s.cluster.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, &web); err != nil {
		return err
	}
	ip, ok := serviceAddress(&web)
	if !ok {
		return errors.New("web has no address")
	}
	network := dataplane.NewNetwork()
	if err := s.connections.start(ctx, s.lab, network); err != nil {
		return err
	}
	front := netip.AddrPortFrom(ip, 80)
	limited, cancel := context.WithTimeoutCause(ctx, connectionsDeadline, fmt.Errorf("no member of web takes flows after %s", connectionsDeadline))
	defer cancel()
	members := len(s.observer.memberNames("web"))
	err := pollUntil(limited, pollInterval/5, func() (bool, error) {
		return len(s.connections.balancer.Takers(dataplane.TCP, front)) == members, nil
	})
	if err != nil {
		return err
	}
	target := func() (netip.AddrPort, bool) { return network.Resolve(dataplane.DestinationOf(dataplane.TCP, front)) }
	at, _ := target()
	s.connections.url = "http://" + at.String() + "/"
	s.print.printLine(plainText, "start", fmt.Sprintf("curl %s reaches web at %s", s.connections.url, front))
	s.connections.load = dataplane.StartLoad(dataplane.LoadOptions{Protocol: dataplane.TCP, Target: target})
	return nil
}

// start starts nodes, pods and load balancers. A deleted pod serves until its object is removed.
func (c *connections) start(ctx context.Context, l *lab, network *dataplane.Network) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return err
	}
	nodes := dataplane.StartCluster(network, dataplane.ClusterOptions{IsDead: isMachineStopped, PreStop: time.Hour})
	c.closeAll = append(c.closeAll, nodes.Close)
	stop, err := dataplane.WatchCluster(ctx, config, func(state *dataplane.ClusterState) { _ = nodes.Apply(state) }) // what has no socket is lost flows
	if err != nil {
		return err
	}
	admin := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}}
	c.balancer = dataplane.StartBalancer(network, dataplane.BalancerOptions{Source: dataplane.AdminSource(admin, l.admin), TimeScale: latencyScale})
	c.closeAll = append(c.closeAll, stop, admin.CloseIdleConnections, c.balancer.Close)
	return nil
}

// countConnections stops the client and prints its count. The data plane remains, for curl.
func (s *stage) countConnections(context.Context) error {
	if s.connections == nil || s.connections.load == nil {
		return nil
	}
	c := s.connections
	c.count, c.load = c.load.Stop(), nil
	s.print.printDetail(c.summary().String())
	if f := c.count.Failures; len(f) > 0 {
		s.print.printDetail("the first: " + f[0])
	}
	return nil
}

// summary is nil without a count.
func (c *connections) summary() *ConnectionsSummary {
	if c == nil || c.count.Attempted == 0 {
		return nil
	}
	return &ConnectionsSummary{Address: c.url, Attempted: c.count.Attempted, Lost: c.count.Lost, Cut: c.count.Cut}
}

func (s *stage) closeConnections() {
	c := s.connections
	if c == nil {
		return
	}
	if c.load != nil {
		c.load.Stop()
		c.load = nil
	}
	for i := len(c.closeAll) - 1; i >= 0; i-- {
		c.closeAll[i]()
	}
	c.closeAll = nil
}

// isMachineStopped reports what stopMachine did.
func isMachineStopped(node *corev1.Node) bool {
	return node.Annotations["kubelab.weir.dev/dead"] == "true"
}
