// Lets the answers of a stream through one by one, when they are asked for.
//
// A stream of grpc-js reads up to 16 messages ahead, of megabytes each. Behind a gate it has one at most. The server
// then waits, as the next message is not taken from the connection.

import { InterceptingCall, type Interceptor } from "@grpc/grpc-js";

/** A gate in front of the answers of one call. */
export interface Gate {
  interceptor: Interceptor;
  /** Lets one more answer through: the one that waits, or the next one that comes. */
  open(): void;
}

/** A gate that is closed. */
export function gate(): Gate {
  let wanted = 0;
  let waiting: (() => void) | undefined;
  const pass = (): void => {
    if (wanted === 0 || waiting === undefined) return;
    wanted--;
    const next = waiting;
    waiting = undefined;
    next();
  };
  const interceptor: Interceptor = (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start(metadata, _listener, next) {
        next(metadata, {
          onReceiveMessage(message, deliver) {
            waiting = () => deliver(message);
            pass();
          },
        });
      },
    });
  const open = (): void => {
    wanted++;
    pass();
  };
  return { interceptor, open };
}
