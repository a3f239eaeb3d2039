package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog"
)

// priceFlag is --prices: the prices for estimates.
type priceFlag struct {
	priceFile string

	table *prices.Table // nil estimates nothing
}

// noPrices is the --prices without estimates.
const noPrices = "none"

// pricesHelp explains estimates and --prices.
const pricesHelp = `COST sums the costs in the log. If an answer has no cost, ESTIMATE has the list price
of its tokens, from logtool or from the file of --prices. ~ marks estimates, which are
summed apart. An answer without both is unpriced, also if its price lacks one kind of
its tokens. A file of prices is LiteLLM's table, or JSON in dollars per million tokens:

  {"models": {"my-model": [{"input": 3, "output": 15, "cache_read": 0.3}]}}`

func (x *priceFlag) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&x.priceFile, "prices", "", "a `file` with prices that go before the built-in ones; none estimates nothing")
}

// read sets the table.
func (x *priceFlag) read() error {
	if x.priceFile == noPrices {
		return nil
	}
	x.table = prices.Builtin()
	if x.priceFile == "" {
		return nil
	}
	f, err := os.Open(x.priceFile)
	if err != nil {
		return fmt.Errorf("--prices: %w", err)
	}
	defer f.Close()
	mine, err := prices.Read(f)
	if err != nil {
		return fmt.Errorf("--prices %s: %w", x.priceFile, err)
	}
	x.table = x.table.With(mine)
	return nil
}

// estimates makes a run log estimate with the table.
func (x *priceFlag) estimates(o *runlog.Options) {
	if x.table != nil {
		o.Estimate = x.table.Cost
	}
}
