// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/requestlog"
)

// CallsOptions are the flags of weir calls.
type CallsOptions struct {
	Connection Connection
	// Since is the maximum age; zero means no limit.
	Since time.Duration
	// Service and Pool are NAMESPACE/NAME; at most one is set.
	Service, Pool string
	Resource      string
	Failed        bool
	JSON          bool
	Out           io.Writer
}

// PrintCalls prints the last requests that a running Weir sent to Azure.
func PrintCalls(ctx context.Context, o CallsOptions) error {
	f, err := o.buildFilter()
	if err != nil {
		return &UsageError{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := FetchCalls(ctx, o.Connection, f, o.Since)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	if o.JSON {
		_, err := io.Copy(o.Out, answer)
		return err
	}
	return printCallTable(o.Out, answer)
}

// FetchCalls streams the calls that match f, one JSON object per line, until ctx ends. Errors are returned
// within responseTimeout.
func FetchCalls(ctx context.Context, w Connection, f requestlog.Filter, since time.Duration) (io.ReadCloser, error) {
	return w.fetch(ctx, requestlog.CallsPath, requestlog.EncodeQuery(f, since))
}

// fetch returns the body of a response of the operator server.
func (w Connection) fetch(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	at, err := url.Parse(w.Server)
	if err != nil || at.Scheme != "http" || at.Host == "" {
		return nil, &UsageError{Err: fmt.Errorf("--operator-url %q: want a URL such as %s", w.Server, LeaderServer)}
	}
	at.Path, at.RawQuery = path, query.Encode()
	ctx, end := context.WithCancelCause(ctx)
	late := time.AfterFunc(responseTimeout, func() { end(errNoResponse) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DialContext: w.dialWithTimeout, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}}).Do(req)
	late.Stop()
	if err != nil {
		defer end(nil)
		return nil, w.addHint(cmp.Or(context.Cause(ctx), err))
	}
	if resp.StatusCode != http.StatusOK {
		defer end(nil)
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // a partial body is good enough
		return nil, fmt.Errorf("%s: %s: %s; is it a Weir's --operator-bind-address?", w.Server, resp.Status, strings.TrimSpace(string(body)))
	}
	return &callStream{resp.Body, end}, nil
}

// responseTimeout bounds the time to the first byte.
const responseTimeout = 4 * time.Second

var errNoResponse = fmt.Errorf("no answer within %s", responseTimeout)

// LeaderServer is the default of --operator-bind-address: a loopback address on each replica.
const LeaderServer = "http://127.0.0.1:8082"

// Connection describes how to reach a running Weir.
type Connection struct {
	// Server is the URL of its --operator-bind-address.
	Server string
	// Dial connects to Server on another machine; nil means this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// dialWithTimeout has its own timeout: http.Transport keeps dialing after the request is canceled.
func (w Connection) dialWithTimeout(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	if w.Dial == nil {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return w.Dial(ctx, network, address)
}

func (w Connection) addHint(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // drop the URL
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errNoResponse
	}
	if w.Dial == nil {
		return fmt.Errorf("no Weir responds at %s: %w; without --operator-url the leader is found by its Lease, and reached through the API server", w.Server, err)
	}
	if errors.Is(err, errNoResponse) {
		return fmt.Errorf("the leader: %w; check that the API server (kubectl get --raw /readyz) and the node of the leader's pod respond", err)
	}
	return err
}

// callStream is a response body; closing it cancels the request.
type callStream struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (l *callStream) Close() error {
	defer l.cancel(nil)
	return l.ReadCloser.Close()
}

func (o CallsOptions) buildFilter() (requestlog.Filter, error) {
	f := requestlog.Filter{Failed: o.Failed, Resource: o.Resource}
	if o.Service != "" && o.Pool != "" {
		return f, errors.New("--service and --pool: want one of them")
	}
	if o.Since < 0 {
		return f, fmt.Errorf("--since %s: want more than 0", o.Since)
	}
	kind, flag := "Service", "--service"
	if o.Pool != "" {
		kind, flag = "BackendPool", "--pool"
	}
	if name := cmp.Or(o.Service, o.Pool); name != "" {
		namespace, own, ok := strings.Cut(name, "/")
		if !ok || namespace == "" || own == "" {
			return f, fmt.Errorf("%s %q: want NAMESPACE/NAME", flag, name)
		}
		f.Cause = requestlog.Cause{Kind: kind, Namespace: namespace, Name: own}
	}
	return f, nil
}

func printCallTable(out io.Writer, lines io.Reader) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	scanner, n := bufio.NewScanner(lines), 0
	scanner.Buffer(nil, 1<<20)
	for ; scanner.Scan(); n++ {
		if n == 0 {
			fmt.Fprintln(table, "TIME\tOPERATION\tSTATUS\tTOOK\tRESOURCE\tFOR\tREQUEST ID")
		}
		var c requestlog.Call
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			return fmt.Errorf("line %d of the response: %w", n+1, err)
		}
		status := fmt.Sprint(c.Status)
		if c.Status == 0 {
			status = "no answer"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.At.UTC().Format("15:04:05.000"), c.Op, status, c.Took.Round(time.Millisecond),
			cmp.Or(trimResourceID(c.Resource), "-"), cmp.Or(describeCauses(c.Causes), "-"), cmp.Or(c.RequestID, "-"))
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading the response: %w", err)
	}
	if n == 0 {
		_, err := fmt.Fprintln(out, "No request matches. Only the leader sends requests to Azure: with --operator-url, check that it is the leader.")
		return err
	}
	return table.Flush()
}

func trimResourceID(id string) string {
	if _, rest, ok := strings.Cut(id, "/providers/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return id
}

func describeCauses(all []requestlog.Cause) string {
	named := make([]string, len(all))
	for i, c := range all {
		named[i] = c.Kind + " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	}
	return humanize.FormatList(named, 2)
}
