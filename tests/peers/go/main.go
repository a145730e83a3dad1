// A server on mark3labs/mcp-go over HTTP+SSE. It says that it tells of changed lists, and never does; a tool that fails is a result, and
// one that cannot be carried out an error.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// How long calls may go on once it is told to end.
const grace = 10 * time.Second

func tools(s *server.MCPServer) {
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())),
		func(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(request.GetString("text", "")), nil
		})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("the user's fault"), nil
	})
	s.AddTool(mcp.NewTool("break"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("out of order")
	})
	s.AddTool(mcp.NewTool("wait", mcp.WithNumber("milliseconds", mcp.Required())),
		func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			time.Sleep(time.Duration(request.GetInt("milliseconds", 0)) * time.Millisecond)
			return mcp.NewToolResultText("waited"), nil
		})
}

func main() {
	s := server.NewMCPServer("mcp-go", "1", server.WithToolCapabilities(true))
	tools(s)
	sse := server.NewSSEServer(s)
	web := &http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: sse}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-end
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = sse.Shutdown(ctx)
		_ = web.Shutdown(ctx)
		os.Exit(0)
	}()
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	select {}
}
