// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"
)

// width is the maximum line width in columns.
const width = 80

// textStyle is a terminal escape sequence.
type textStyle string

const (
	plainText  textStyle = ""
	boldText   textStyle = "\x1b[1m"
	redText    textStyle = "\x1b[31m"
	greenText  textStyle = "\x1b[32m"
	yellowText textStyle = "\x1b[33m"
	dimText    textStyle = "\x1b[2m"
	reset                = "\x1b[0m"
)

// printer writes lines of the form "12.3s tag text". It filters non-printable characters.
type printer struct {
	out       io.Writer
	start     time.Time
	isColored bool
	// onWriteError, if set, is called at the first write error.
	onWriteError func(error)

	mu sync.Mutex // of out and onWriteError: a lost Lease is reported by another goroutine
}

// newPrinter enables colors on a terminal unless NO_COLOR is set or it has no colors.
func newPrinter(out io.Writer) *printer {
	file, ok := out.(*os.File)
	return &printer{
		out: out, start: time.Now(),
		isColored: ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())), //nolint:gosec // a descriptor fits
	}
}

// printLine prints text after the time and a tag, wrapped and indented.
func (p *printer) printLine(c textStyle, tag, text string) {
	p.printRow(c, fmt.Sprintf("%6.1fs", time.Since(p.start).Seconds()), tag, text)
}

// printDetail prints text below a line.
func (p *printer) printDetail(text string) { p.printRow(plainText, "       ", "", text) }

func (p *printer) printRow(c textStyle, stamp, tag, text string) {
	for _, row := range wrapText(text, width-len(stamp)-2-tagWidth-1) {
		p.writeText(c, fmt.Sprintf("%s  %-*s %s", stamp, tagWidth, tag, row))
		stamp, tag = strings.Repeat(" ", len(stamp)), ""
	}
}

const tagWidth = len("cluster")

// printPlain prints lines without time and tag.
func (p *printer) printPlain(lines ...string) {
	for _, l := range lines {
		for _, row := range wrapText(l, width) {
			p.writeText(plainText, row)
		}
	}
}

// printVerbatim prints lines without wrapping; non-printable characters become spaces.
func (p *printer) printVerbatim(c textStyle, lines ...string) {
	for _, l := range lines {
		p.writeText(c, printableText(l))
	}
}

func printableText(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

func (p *printer) writeText(c textStyle, row string) {
	row = strings.TrimRight(row, " ")
	if p.isColored && c != plainText {
		row = string(c) + row + reset
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := fmt.Fprintln(p.out, row); err != nil && p.onWriteError != nil {
		report := p.onWriteError
		p.onWriteError = nil
		report(err)
	}
}

// wrapText breaks text at spaces into rows of at most columns and cuts longer words. Control characters
// become spaces.
func wrapText(text string, columns int) []string {
	text = printableText(text)
	var rows []string
	rest := []rune(text)
	for len(rest) > columns {
		cut := columns
		for cut > columns/2 && rest[cut] != ' ' {
			cut--
		}
		if rest[cut] != ' ' {
			cut = columns
		}
		rows = append(rows, strings.TrimRight(string(rest[:cut]), " "))
		rest = []rune(strings.TrimLeft(string(rest[cut:]), " "))
	}
	return append(rows, string(rest))
}

// printPools prints the sync state of the pools.
func (p *printer) printPools(pools []poolState) {
	tag, c := "pools", yellowText
	if allInSync(pools) {
		tag, c = "in sync", greenText
	}
	p.printLine(c, tag, formatPoolStates(pools))
}

// poolColumn fits "web 100/100 +10".
const poolColumn = 16

func formatPoolStates(pools []poolState) string {
	var b strings.Builder
	for _, pool := range pools {
		fmt.Fprintf(&b, "%-*s", poolColumn, pool)
	}
	return strings.TrimRight(b.String(), " ")
}
