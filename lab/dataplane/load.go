// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	// maxOpenFlows is the number of flows of one client that are open at a time; others are not attempted.
	maxOpenFlows = 256
	// maxFailures is the number of failures that a count describes.
	maxFailures = 10
)

// LoadOptions configure a client.
type LoadOptions struct {
	Protocol Protocol
	// Target returns the socket of the frontend; false is a lost flow.
	Target func() (netip.AddrPort, bool)
	// Every is the time between two new flows; 0 is 20 ms.
	Every time.Duration
	// Hold is how long a TCP connection remains open, with a request each Every; 0 is one request.
	Hold time.Duration
	// Timeout of one request; 0 is 10 s. On loopback nothing gets lost silently except datagrams without a target.
	Timeout time.Duration
}

// LoadCount counts flows. Attempted is Succeeded and Lost.
type LoadCount struct {
	Attempted int
	// Succeeded flows got an answer to their first request.
	Succeeded int
	// Lost flows did not.
	Lost int
	// Cut flows succeeded, and broke before the client ended them.
	Cut int
	// Skipped flows were not attempted, because too many were open.
	Skipped int
	// Pods and Nodes count answers to first requests.
	Pods, Nodes map[string]int
	// Failures describes the first lost and cut flows.
	Failures []string
}

func (c LoadCount) String() string {
	return fmt.Sprintf("%d flows: %d lost, %d cut", c.Attempted, c.Lost, c.Cut)
}

// Load opens flows until it is stopped.
type Load struct {
	opts    LoadOptions
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	open  int
	count LoadCount
}

func newLoad(opts LoadOptions) *Load {
	if opts.Every == 0 {
		opts.Every = 20 * time.Millisecond
	}
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second
	}
	return &Load{opts: opts, count: LoadCount{Pods: map[string]int{}, Nodes: map[string]int{}}}
}

// StartLoad starts a client. Call Stop.
func StartLoad(opts LoadOptions) *Load {
	l := newLoad(opts)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.running.Go(func() {
		ticker := time.NewTicker(l.opts.Every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.begin(ctx)
			}
		}
	})
	return l
}

// SendFlows opens n flows one after the other.
func SendFlows(opts LoadOptions, n int) LoadCount {
	l := newLoad(opts)
	for range n {
		l.runFlow(context.Background())
	}
	return l.Count()
}

// Stop opens no more flows, ends the open ones after their current request, and returns the count.
func (l *Load) Stop() LoadCount {
	l.cancel()
	l.running.Wait()
	return l.Count()
}

// Count returns the count so far.
func (l *Load) Count() LoadCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.count
	c.Pods, c.Nodes, c.Failures = maps.Clone(c.Pods), maps.Clone(c.Nodes), append([]string(nil), c.Failures...)
	return c
}

func (l *Load) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= maxOpenFlows {
		l.count.Skipped++
		return
	}
	l.open++
	l.running.Go(func() {
		l.runFlow(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
	})
}

// runFlow opens one flow. ctx ends its hold, not its requests.
func (l *Load) runFlow(ctx context.Context) {
	conn, pod, node, err := l.connect()
	l.mu.Lock()
	l.count.Attempted++
	if err != nil {
		l.count.Lost++
		l.addFailure("lost", err)
	} else {
		l.count.Succeeded++
		l.count.Pods[pod]++
		l.count.Nodes[node]++
	}
	l.mu.Unlock()
	if err != nil {
		return
	}
	defer conn.Close()
	if l.opts.Protocol == UDP {
		return
	}
	for end := time.Now().Add(l.opts.Hold); time.Now().Before(end) && sleep(ctx, l.opts.Every); {
		if _, _, err := l.request(conn); err != nil {
			l.mu.Lock()
			l.count.Cut++
			l.addFailure("cut", fmt.Errorf("flow to pod %s on %s: %w", pod, node, err))
			l.mu.Unlock()
			return
		}
	}
}

func (l *Load) addFailure(kind string, err error) {
	if len(l.count.Failures) < maxFailures {
		l.count.Failures = append(l.count.Failures, time.Now().Format("15:04:05.000")+" "+kind+": "+err.Error())
	}
}

// connect connects and sends the first request.
func (l *Load) connect() (conn net.Conn, pod, node string, err error) {
	at, ok := l.opts.Target()
	if !ok {
		return nil, "", "", errors.New("the frontend has no socket")
	}
	dialer := net.Dialer{Timeout: l.opts.Timeout}
	if conn, err = dialer.DialContext(context.Background(), string(l.opts.Protocol), at.String()); err != nil {
		return nil, "", "", err
	}
	if pod, node, err = l.request(conn); err != nil {
		_ = conn.Close()
		return nil, "", "", err
	}
	return conn, pod, node, nil
}

// request sends one request and returns what answered.
func (l *Load) request(conn net.Conn) (pod, node string, err error) {
	if err := conn.SetDeadline(time.Now().Add(l.opts.Timeout)); err != nil {
		return "", "", err
	}
	if l.opts.Protocol == UDP {
		return exchangeDatagram(conn)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://service/", strings.NewReader("hello"))
	if err != nil {
		return "", "", err
	}
	if err := request.Write(conn); err != nil {
		return "", "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return "", "", err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err == nil && !strings.HasSuffix(string(body), "hello") {
		err = fmt.Errorf("the answer %q is not an echo", body)
	}
	return answer.Header.Get(podHeader), answer.Header.Get(nodeHeader), err
}

func exchangeDatagram(conn net.Conn) (pod, node string, err error) {
	if _, err := conn.Write([]byte("hello")); err != nil {
		return "", "", err
	}
	buffer := make([]byte, maxDatagram)
	n, err := conn.Read(buffer)
	if err != nil {
		return "", "", err
	}
	greeting, echo, _ := strings.Cut(string(buffer[:n]), "\n")
	if echo != "hello" {
		return "", "", fmt.Errorf("the answer %q is not an echo", buffer[:n])
	}
	pod, node, _ = strings.Cut(strings.TrimPrefix(greeting, "pod "), " on ")
	return pod, node, nil
}
