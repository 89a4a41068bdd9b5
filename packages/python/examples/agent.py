"""A program as users run it: it takes its CLI from the environment, or finds it as the SDK does."""

import asyncio
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main() -> None:
    options = ClaudeAgentOptions(cli_path=os.environ.get("AGENT_CLAUDE"))
    async for message in query(prompt=sys.argv[1], options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main())
